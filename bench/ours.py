"""Ostinato's store with everything on: checks, guards, fences, leases, history, wake-ups."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg

from ostinato import NewJob, enqueue, enqueue_many, store
from ostinato.migrations import migrate, read_migrations

# Straight into the tables: what is measured is how fast they are emptied.
FILL = """
insert into ostinato.jobs (job_type, payload)
select 'noop', jsonb_build_object('n', n, 'pad', repeat('x', 100)) from generate_series(1, $1) as n
"""
FILL_HISTORY = """
insert into ostinato.job_history
    (id, job_type, payload, state, attempt, lease, worker_id, started_at, finished_at)
select ostinato.uuidv7(), 'noop', jsonb_build_object('n', n, 'pad', repeat('x', 100)), 'completed', 1, n,
    ostinato.first_id(now()), now(), now() - (n % 2) * interval '1 day'
from generate_series(1, $1) as n
"""


class Ours:
    name = "ostinato"

    def __init__(self) -> None:
        self._workers: dict[Any, tuple[UUID, store.Lanes]] = {}

    async def setup(self, conn: asyncpg.Connection[Any]) -> None:
        await conn.execute("drop schema if exists ostinato cascade")
        await migrate(conn, read_migrations())

    async def fill(self, conn: asyncpg.Connection[Any], jobs: int) -> None:
        await conn.execute(FILL, jobs)
        await conn.execute("vacuum analyze ostinato.jobs")

    async def fill_history(self, conn: asyncpg.Connection[Any], jobs: int) -> None:
        await conn.execute(FILL_HISTORY, jobs)
        await conn.execute("vacuum analyze ostinato.job_history")

    async def enqueue(self, conn: asyncpg.Connection[Any], payloads: list[dict[str, Any]]) -> None:
        for payload in payloads:
            await enqueue(conn, "noop", payload)

    async def enqueue_bulk(self, conn: asyncpg.Connection[Any], payloads: list[dict[str, Any]]) -> None:
        await enqueue_many(conn, [NewJob("noop", payload) for payload in payloads])

    async def _worker(self, conn: asyncpg.Connection[Any], batch: int) -> tuple[UUID, store.Lanes]:
        """One worker for as long as its connection lives, as a worker does."""
        if conn not in self._workers:
            types = [store.JobType(name="noop")]
            new = store.NewWorker(namespace="default", queues=["default"], job_types=types, concurrency=batch)
            worker = await store.register_worker(conn, new, lease=timedelta(hours=1))
            self._workers[conn] = (worker, store.Lanes("default", ["default"]))
        return self._workers[conn]

    async def drain(self, conn: asyncpg.Connection[Any], batch: int, most: int) -> int:
        worker, lanes = await self._worker(conn, batch)
        done = 0
        while done < most and (jobs := await store.claim(conn, worker, lanes, types=["noop"], limit=batch)):
            lost = await store.complete(conn, jobs)
            done += len(jobs) - len(lost)
        return done

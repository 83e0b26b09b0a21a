"""Ostinato by its public API, as a user has it: `enqueue`, `@job` and a Worker, on uvloop as `ostinato worker` is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import asyncpg
import uvloop

from bench.peers.adapters.protocol import BUSINESS_INSERT, DSN, HANDLER, Peer, main, progress, versions
from ostinato import Context, NewJob, enqueue, enqueue_many, job
from ostinato.migrations import migrate, read_migrations

TUNED = (100, 500)
IN_TRANSACTIONS = (16, 32)  # each has a connection


@job("noop")
async def noop(payload: dict[str, Any], ctx: Context) -> None:
    progress.hit()


@job("latency")
async def latency(payload: dict[str, Any], ctx: Context) -> None:
    progress.probe(payload["n"])


@job("txn", transaction=True)
async def txn(payload: dict[str, Any], ctx: Context) -> None:
    progress.hit()
    await ctx.tx.execute(BUSINESS_INSERT.format("$1"), payload["n"])


class Ours(Peer):
    meta: ClassVar[dict[str, Any]] = {
        "peer": "ostinato",
        "fast": True,
        "versions": versions("ostinato", "asyncpg", "uvloop"),
        "bulk_chunks": [1000, 20000],
        "left_sql": "SELECT count(*) FROM ostinato.jobs",
        "backlog_sql": "INSERT INTO ostinato.jobs (job_type, payload) "
        "SELECT 'noop', jsonb_build_object('n', g) FROM generate_series(1, %(n)s) g",
        "atomic_txn": True,
        "note": "keeps finished jobs in daily partitions",
        "confs": {
            "throughput": [{"default": True}, *({"concurrency": each} for each in TUNED)],
            "latency": [{"default": True}],
            "txn": [{"default": True}, *({"concurrency": each} for each in IN_TRANSACTIONS)],
            "idle": [{"default": True}],
        },
    }

    async def setup(self) -> None:
        await migrate(await asyncpg.connect(DSN), read_migrations())

    async def open(self) -> None:
        self.conn = await asyncpg.connect(DSN)

    async def enqueue_one(self, i: int) -> None:
        await enqueue(self.conn, HANDLER, {"n": i})

    async def enqueue_many(self, ids: Sequence[int]) -> None:
        await enqueue_many(self.conn, [NewJob(HANDLER, {"n": i}) for i in ids])

    async def work(self, handler: str, conf: dict[str, Any]) -> None:
        from ostinato_worker import Worker, memory  # here, as whoever enqueues does not need it

        memory.settle()
        await Worker(DSN, jobs=[noop, latency, txn], queues=["default"], **conf).run()


if __name__ == "__main__":
    main(Ours(), uvloop.run)

"""Isolated jobs through a worker: what their processes do becomes what the database says."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ostinato import enqueue, store
from ostinato.lifecycle import State
from ostinato.settings import Settings
from ostinato.store import Cancellation, Job
from ostinato_worker import Worker
from tests.worker import jobs

SETTINGS = Settings(max_attempts=1)


def worker(dsn: str) -> Worker:
    return Worker(dsn, "tests.worker.jobs", settings=SETTINGS, stop_grace="1s", grace="1s")


async def ran(dsn: str, conn: Any, job_type: str, payload: Any = None, **options: Any) -> Job:
    made = await enqueue(conn, job_type, payload, **options)
    await asyncio.wait_for(worker(dsn).drain(), 30)
    return await store.get_job(conn, made.id)


async def test_its_output_comes_back(dsn: str, conn: Any) -> None:
    done = await ran(dsn, conn, "echo", {"to": "ada"})

    assert (done.state, done.output) == (
        State.COMPLETED,
        {"to": "ada", "copies": 1, "attempt": 1, "namespace": "default"},
    )


async def test_what_it_asks_of_its_worker_is_done(dsn: str, conn: Any) -> None:
    for job_type in ("asks", "asks_sync"):
        done = await ran(dsn, conn, job_type, {"n": 1})

        assert done.state is State.COMPLETED
        assert done.progress is not None
        assert await store.list_events(conn, done.id) != []


async def test_a_process_that_dies_is_a_failure_with_its_reason(dsn: str, conn: Any) -> None:
    done = await ran(dsn, conn, "dies", {"how": "SIGKILL"})

    assert (done.state, done.error_code) == (State.DEAD_LETTERED, "PROCESS_DIED")
    assert "SIGKILL" in (done.error_message or "")


async def test_its_timeout_ends_a_process_that_listens_to_nothing(dsn: str, conn: Any) -> None:
    done = await ran(dsn, conn, "deaf", {"ignores": ["SIGTERM"]}, timeout="300ms")

    assert (done.state, done.error_code) == (State.DEAD_LETTERED, "TIMEOUT")


async def test_its_hooks_run_in_the_worker_and_its_class_is_made_in_its_process_alone(dsn: str, conn: Any) -> None:
    @asynccontextmanager
    async def state() -> AsyncIterator[str]:
        yield "the worker's"

    made = await enqueue(conn, "hooked", {})
    jobs.CALLED.clear()
    await asyncio.wait_for(Worker(dsn, "tests.worker.jobs", settings=SETTINGS, state=state).drain(), 30)
    done = await store.get_job(conn, made.id)

    here = os.getpid()
    [process], called_there = done.output
    assert (process != here, called_there) == (True, [])
    assert jobs.MADE == []
    assert [
        ("start", here, "the worker's"),
        ("success", here, "the worker's", done.output),
        ("end", here, "the worker's"),
    ] == jobs.CALLED


async def test_calling_it_off_ends_its_process(dsn: str, conn: Any) -> None:
    made = await enqueue(conn, "waits", {})
    async with worker(dsn), asyncio.timeout(20):
        while (await store.get_job(conn, made.id)).state is not State.RUNNING:
            await asyncio.sleep(0.01)
        assert await store.cancel(conn, made.id) is Cancellation.ASKED
        while (done := await store.get_job(conn, made.id)).state is State.RUNNING:
            await asyncio.sleep(0.01)

    assert (done.state, done.error_code) == (State.CANCELLED, "CANCELLED")

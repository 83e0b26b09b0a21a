"""A worker hears of what is new, and of what is called off, at once."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from ostinato import Context, SyncContext, job, store
from ostinato.lifecycle import State
from ostinato.settings import Settings
from ostinato.store import Cancellation
from ostinato_worker import Worker
from ostinato_worker.heart import BEATS


async def until(true: Any) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.002)


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_running_job_that_is_called_off_stops_within_a_second(dsn: str, conn: Any, in_thread: bool) -> None:
    started = threading.Event()

    if in_thread:

        @job("work")
        def work(ctx: SyncContext) -> None:
            started.set()
            ctx.cancelled.wait_in_thread(10)
            raise RuntimeError("cut short")
    else:

        @job("work")
        async def work(ctx: Context) -> None:
            started.set()
            await ctx.cancelled.wait()

    made = await work.enqueue(conn)
    async with Worker(dsn, [work]):
        await until(started.is_set)
        began = asyncio.get_running_loop().time()
        assert await store.cancel(conn, made.id) is Cancellation.ASKED
        async with asyncio.timeout(10):
            while (done := await store.get_job(conn, made.id)).state is State.RUNNING:
                await asyncio.sleep(0.005)
        took = asyncio.get_running_loop().time() - began

    assert (done.state, done.error_code) == (State.CANCELLED, "CANCELLED")
    assert took < 1


async def test_a_cancellation_that_nobody_could_hear_is_found_with_the_next_heartbeat(dsn: str, conn: Any) -> None:
    """As behind PgBouncer in transaction mode."""
    lease = timedelta(seconds=6)
    started = asyncio.Event()

    @job("work")
    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    made = await work.enqueue(conn)
    async with Worker(f"{dsn}&pgbouncer=true", [work], settings=Settings(lease=lease)):
        await started.wait()
        began = asyncio.get_running_loop().time()
        assert await store.cancel(conn, made.id) is Cancellation.ASKED
        async with asyncio.timeout(20):
            while (done := await store.get_job(conn, made.id)).state is State.RUNNING:
                await asyncio.sleep(0.005)
        took = asyncio.get_running_loop().time() - began

    assert (done.state, done.error_code) == (State.CANCELLED, "CANCELLED")
    assert took < lease.total_seconds() / BEATS + 1


async def test_a_job_that_is_enqueued_while_the_worker_waits_starts_at_once_and_a_delayed_one_when_due(
    dsn: str, conn: Any
) -> None:
    @job("work")
    async def work() -> None: ...

    async with Worker(dsn, [work]) as worker:
        await until(lambda: worker._claimer._idle)
        made = [await work.enqueue(conn, delay=delay) for delay in ("0s", "300ms")]
        async with asyncio.timeout(10):
            while await conn.fetchval("select count(*) from ostinato.jobs"):
                await asyncio.sleep(0.01)
    done = [await store.get_job(conn, each.id) for each in made]

    waits = [each.started_at - each.run_at for each in done if each.started_at]
    assert waits[0] < timedelta(seconds=1)
    assert waits[1] < timedelta(seconds=2.5)

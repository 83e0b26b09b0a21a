"""Hooks are called around an attempt, and can neither hold it up nor change what it comes to."""

import asyncio
from typing import Any

import pytest

from ostinato import Context, enqueue, job, store
from ostinato.handler import Handler
from ostinato.lifecycle import State
from ostinato.settings import Settings
from ostinato.store import Job
from ostinato_worker import Worker
from tests.worker.jobs import hang, hangs_at_start

SETTINGS = Settings(max_attempts=1)


async def ended(conn: Any, job_id: Any) -> Job:
    async with asyncio.timeout(15):
        while (found := await store.get_job(conn, job_id)).state in (State.PENDING, State.RUNNING):
            await asyncio.sleep(0.01)
    return found


@job("in_a_thread", on_start=hang, timeout="200ms")
def in_a_thread() -> None: ...


@pytest.mark.parametrize("handler", [in_a_thread, hangs_at_start])
async def test_one_that_hangs_at_the_start_gives_its_slot_back(dsn: str, conn: Any, handler: Handler) -> None:
    made = await handler.enqueue(conn)
    async with Worker(dsn, [handler], settings=SETTINGS) as worker:
        done = await ended(conn, made.id)
        assert worker._crew is not None
        await asyncio.wait_for(worker._crew.idle(), 5)
        assert worker._crew.busy == 0

    assert (done.state, done.error_code) == (State.DEAD_LETTERED, "TIMEOUT")


async def test_a_handler_is_not_called_when_its_job_was_called_off_before(dsn: str, conn: Any) -> None:
    started, calls = asyncio.Event(), list[str]()

    async def slow(ctx: Context) -> None:
        started.set()
        await ctx.cancelled.wait()

    async def deaf(ctx: Context) -> None:
        try:
            await slow(ctx)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)

    @job("work", on_start=deaf)
    def work() -> None:
        calls.append("called")

    made = await work.enqueue(conn)
    async with Worker(dsn, [work], settings=SETTINGS):
        await asyncio.wait_for(started.wait(), 10)
        await store.cancel(conn, made.id)
        done = await ended(conn, made.id)

    assert (done.state, calls) == (State.CANCELLED, [])


async def test_whatever_they_raise_the_handler_runs_and_the_others_are_called(dsn: str, conn: Any) -> None:
    calls: list[Any] = []

    def leave(ctx: Context) -> None:
        raise SystemExit(3)

    async def cancelled(ctx: Context, output: Any) -> None:
        calls.append(output)
        raise asyncio.CancelledError

    @job("work", transaction=True, on_start=leave, on_success=cancelled, on_end=lambda ctx: calls.append("end"))
    async def work() -> str:
        return "done"

    made = await work.enqueue(conn)
    await asyncio.wait_for(Worker(dsn, [work], settings=SETTINGS).drain(), 15)

    assert (await store.get_job(conn, made.id)).output == "done"
    assert calls == ["done", "end"]


async def test_a_payload_that_does_not_fit_its_type_has_failed_too(dsn: str, conn: Any) -> None:
    calls: list[str] = []

    @job(
        "work",
        on_start=lambda ctx: calls.append("start"),
        on_fail=lambda ctx, error: calls.append(error.code),
        on_end=lambda ctx: calls.append("end"),
    )
    async def work(payload: list[int]) -> None: ...

    await enqueue(conn, "work", {"not": "a list"})
    await asyncio.wait_for(Worker(dsn, [work], settings=SETTINGS).drain(), 15)

    assert calls == ["PAYLOAD_INVALID", "end"]

"""Handlers, hooks and classes that behave badly cost their own job, and nobody else's."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pydantic
import pytest

from ostinato import Context, InvalidArgument, Snooze, SyncContext, TransientError, enqueue_many, job, store
from ostinato.lifecycle import State
from ostinato.settings import Settings
from ostinato.store import Job
from ostinato_worker import Worker

SETTINGS = Settings(max_attempts=1)


class Broken(pydantic.BaseModel):
    @pydantic.model_validator(mode="before")
    @classmethod
    def check(cls, value: Any) -> Any:
        raise KeyError("a validator may raise anything")


class Panics(pydantic.BaseModel):
    @pydantic.model_validator(mode="before")
    @classmethod
    def check(cls, value: Any) -> Any:
        raise GeneratorError


class NoCode(TransientError):
    def __init__(self) -> None:
        """Does not call the class that it stands on."""


class Later(Snooze):
    def __init__(self) -> None:
        """Nor does this."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even its message can be had")


class Never:
    def delay(self, attempt: int, chance: Any = None) -> timedelta:
        raise RuntimeError("no idea")


class Seconds:
    def delay(self, attempt: int, chance: Any = None) -> Any:
        return 3600


def raising(error: Callable[[], BaseException]) -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        raise error()

    return work


def raising_later(error: Callable[[], BaseException]) -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        await asyncio.sleep(0)
        raise error()

    return work


async def invalid(payload: Broken) -> None: ...


async def panicking(payload: Panics) -> None: ...


async def cancels_its_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def cancelled_hook(*_: Any) -> None:
    raise asyncio.CancelledError


async def unreal(*_: Any) -> None:
    raise GeneratorError


async def closed_hook(*_: Any) -> None:
    raise GeneratorExit


class GeneratorError(BaseException):
    """Not even an Exception."""


HOSTILE = {
    "a validator that raises": job("bad")(invalid),
    "a validator that raises no Exception": job("bad")(panicking),
    "an error without its code": job("bad")(raising(NoCode)),
    "a snooze without its length": job("bad")(raising(Later)),
    "what a coroutine gets that is closed": job("bad")(raising(GeneratorExit)),
    "the same after it has waited": job("bad")(raising_later(GeneratorExit)),
    "a hook that raises it": job("bad", on_start=closed_hook)(raising(ValueError)),
    "a hook at the end that raises it": job("bad", on_end=closed_hook)(raising_later(ValueError)),
    "an error that cannot be printed": job("bad")(raising(Unprintable)),
    "a backoff that raises": job("bad", backoff=Never(), max_attempts=2)(raising(ValueError)),
    "a backoff of the wrong kind": job("bad", backoff=Seconds(), max_attempts=2)(raising(ValueError)),
    "a code that cannot be stored": job("bad")(raising(lambda: TransientError("x", code="a\0b\ud800" * 99))),
    "a hook that raises CancelledError": job("bad", on_start=cancelled_hook)(raising(ValueError)),
    "a hook at the end that does": job("bad", on_end=cancelled_hook)(raising(ValueError)),
    "a hook that raises no Exception": job("bad", on_fail=unreal)(raising(ValueError)),
    "its own cancellation": job("bad")(cancels_its_task),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_it_costs_its_own_job_alone(dsn: str, conn: Any, name: str) -> None:
    bad = HOSTILE[name]

    @job("good")
    async def good() -> None:
        await asyncio.sleep(0)

    one = await bad.enqueue(conn, {})
    others = [(await good.enqueue(conn)).id for _ in range(3)]
    await asyncio.wait_for(Worker(dsn, [bad, good], settings=SETTINGS).drain(), 15)

    ends = [(await store.get_job(conn, job_id)).state for job_id in others]
    assert ends == [State.COMPLETED] * 3
    assert (await store.get_job(conn, one.id)).state not in (State.PENDING, State.RUNNING)


async def test_a_task_that_is_cancelled_when_its_job_is_done_is_no_other_jobs(dsn: str, conn: Any) -> None:
    @job("bad")
    async def bad() -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_later(0.05, task.cancel)
        await asyncio.sleep(0.001)

    @job("good")
    async def good() -> None:
        await asyncio.sleep(0.1)

    for each in (bad, bad, good, good):
        await each.enqueue(conn)
    counts = await asyncio.wait_for(Worker(dsn, [bad, good], concurrency=2, settings=SETTINGS).drain(), 15)

    assert counts == {"completed": 4}


async def test_what_others_change_after_it_was_returned_is_written_as_it_was(dsn: str, conn: Any) -> None:
    shared: dict[str, Any] = {"n": 1}

    @job("stats")
    async def stats() -> dict[str, Any]:
        asyncio.get_running_loop().call_soon(shared.update, {"n": object()})
        return shared

    made = await stats.enqueue(conn)
    await asyncio.wait_for(Worker(dsn, [stats], settings=SETTINGS).drain(), 15)

    assert (await store.get_job(conn, made.id)).output == {"n": 1}


def test_a_snooze_that_no_database_can_hold_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="from 1970 to 9998"):
        Snooze(datetime.max.replace(tzinfo=UTC))


def test_a_transaction_is_for_asynchronous_handlers() -> None:
    with pytest.raises(InvalidArgument, match=r"only an asynchronous handler can use ctx\.tx"):

        @job("work", transaction=True)
        def work(ctx: SyncContext) -> None: ...


async def ended(conn: Any, job_id: Any) -> Job:
    async with asyncio.timeout(15):
        while (found := await store.get_job(conn, job_id)).state in (State.PENDING, State.RUNNING):
            await asyncio.sleep(0.01)
    return found


async def test_a_hook_that_hangs_is_cut_off_and_the_verdict_stands(dsn: str, conn: Any) -> None:
    async def hang(*_: Any) -> None:
        await asyncio.Event().wait()

    done = job("done", on_success=hang)(raised_nothing)
    failed = job("failed", on_fail=hang, timeout="50ms")(raising(ValueError))
    one, two = await done.enqueue(conn), await failed.enqueue(conn)
    async with Worker(dsn, [done, failed], settings=SETTINGS, stop_grace="200ms"):
        ends = [await ended(conn, each.id) for each in (one, two)]

    assert [each.state for each in ends] == [State.COMPLETED, State.DEAD_LETTERED]
    assert ends[1].error_code == "HANDLER_ERROR"


async def raised_nothing() -> None: ...


async def test_a_synchronous_hook_may_ask_its_worker_too(dsn: str, conn: Any) -> None:
    def tell(ctx: SyncContext, output: Any) -> None:
        ctx.emit({"output": output})

    @job("sync", on_success=tell)
    def sync() -> int:
        return 1

    @job("async", on_success=tell)
    async def not_sync() -> int:
        return 2

    made = [await each.enqueue(conn) for each in (sync, not_sync)]
    await asyncio.wait_for(Worker(dsn, [sync, not_sync]).drain(), 15)

    told = [[told.event for told in await store.list_events(conn, each.id)] for each in made]
    assert told == [[{"output": 1}], [{"output": 2}]]


async def test_waiting_for_the_worker_in_its_own_loop_is_an_error_and_no_deadlock(dsn: str, conn: Any) -> None:
    found: list[str] = []

    @job("work")
    async def work(ctx: Context) -> None:
        try:
            ctx.in_thread().emit("from the loop itself")
        except RuntimeError as error:
            found.append(str(error))

    await work.enqueue(conn)
    await asyncio.wait_for(Worker(dsn, [work]).drain(), 15)

    assert found == ["this waits for the worker's event loop, in which it runs itself: await it instead"]


async def test_an_old_attempt_that_does_not_end_has_no_part_in_the_next_one(dsn: str, conn: Any) -> None:
    free = threading.Event()
    progressed: list[int] = []

    @job("work", max_attempts=5, backoff=0, timeout="100ms")
    def work(ctx: SyncContext) -> int:
        if ctx.attempt == 1:
            free.wait(10)
            ctx.progress("too late")
        else:
            free.set()
            progressed.append(ctx.attempt)
        return ctx.attempt

    made = await work.enqueue(conn)
    async with Worker(dsn, [work], stop_grace="50ms"):
        async with asyncio.timeout(15):
            while (done := await store.get_job(conn, made.id)).state is not State.COMPLETED:
                await asyncio.sleep(0.01)

    assert (done.attempt, done.output, done.progress) == (2, 2, None)


async def test_slots_that_are_stuck_claim_nothing(dsn: str, conn: Any) -> None:
    free = threading.Event()

    @job("deaf", timeout="50ms", backoff="1h", max_attempts=9)
    def deaf() -> None:
        free.wait(10)

    @job("good")
    async def good() -> None: ...

    await enqueue_many(conn, [deaf.new()] * 2)
    async with Worker(dsn, [deaf, good], concurrency=2, stop_grace="50ms") as worker:
        async with asyncio.timeout(10):
            while worker._working.stuck < 2:
                await asyncio.sleep(0.01)
        made = await good.enqueue(conn)
        await asyncio.sleep(0.1)
        untouched = await store.get_job(conn, made.id)
        free.set()
        assert (await ended(conn, made.id)).state is State.COMPLETED

    assert (untouched.state, untouched.started_at) == (State.PENDING, None)


async def test_a_pool_that_is_too_small_is_refused(dsn: str) -> None:
    async with asyncpg.create_pool(dsn, min_size=0, max_size=4) as pool:
        with pytest.raises(InvalidArgument, match="at least 5 connections"):
            async with Worker(pool, [job("work")(raised_nothing)]):
                pass


async def test_transactional_jobs_leave_connections_of_a_small_pool_for_what_they_ask(dsn: str, conn: Any) -> None:
    @job("work", transaction=True)
    async def work(ctx: Context) -> None:
        await ctx.progress("half")

    await enqueue_many(conn, [work.new()] * 40)
    async with asyncpg.create_pool(dsn, min_size=0, max_size=5) as pool:
        await asyncio.wait_for(Worker(pool, [work]).drain(), 15)

    assert await conn.fetchval("select count(*) from ostinato.job_history where state = 'completed'") == 40


async def test_a_transaction_that_does_not_end_does_not_keep_the_worker_from_ending(dsn: str, conn: Any) -> None:
    started, free = asyncio.Event(), asyncio.Event()

    @job("work", transaction=True)
    async def work(ctx: Context) -> None:
        started.set()
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    made = await work.enqueue(conn)
    async with asyncio.timeout(15):
        async with Worker(dsn, [work], stop_grace="50ms", grace="50ms"):
            await started.wait()
    free.set()

    assert (await store.get_job(conn, made.id)).attempt == 0


async def test_run_that_is_cancelled_again_and_again_leaves_nobody_behind(dsn: str, conn: Any) -> None:
    started = asyncio.Event()

    @job("work")
    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    await work.enqueue(conn)
    running = asyncio.create_task(Worker(dsn, [work], settings=Settings(lease=timedelta(seconds=1))).run())
    await started.wait()
    for _ in range(2):
        running.cancel()
        await asyncio.sleep(0.02)
    await asyncio.wait([running])

    async with asyncio.timeout(10):
        while not await store.expire_workers(conn):
            await asyncio.sleep(0.05)


async def test_draining_ends_when_told_to_stop(dsn: str, conn: Any) -> None:
    started = asyncio.Event()

    @job("work")
    async def work() -> None:
        started.set()
        await asyncio.sleep(0.02)

    await enqueue_many(conn, [work.new()] * 500)
    worker = Worker(dsn, [work], concurrency=1, grace="5s")
    draining = asyncio.create_task(worker.drain())
    await started.wait()
    worker.stop()
    counts = await asyncio.wait_for(draining, 10)

    assert 1 <= counts["completed"] < 500

"""What becomes of a job, by what its handler does."""

import asyncio
import threading
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pydantic
import pytest

from ostinato import (
    Context,
    Fixed,
    PermanentError,
    Snooze,
    SyncContext,
    TransientError,
    enqueue,
    enqueue_many,
    job,
    store,
)
from ostinato.handler import Handler
from ostinato.lifecycle import State
from ostinato.settings import Settings
from ostinato.store import Job
from ostinato_worker import Worker

SETTINGS = Settings(max_attempts=2)


async def ran(dsn: str, conn: Any, handler: Handler, payload: Any = None, **options: Any) -> Job:
    """The job of this handler, after a worker has run all that was due."""
    made = await handler.enqueue(conn, payload, **options)
    await asyncio.wait_for(Worker(dsn, [handler], settings=SETTINGS).drain(), 20)
    return await store.get_job(conn, made.id)


class Email(pydantic.BaseModel):
    to: str


async def test_what_a_handler_returns_is_the_output(dsn: str, conn: Any) -> None:
    @job("work")
    async def work(payload: Email, ctx: Context) -> dict[str, Any]:
        return {"sent": payload.to, "attempt": ctx.attempt, "of": ctx.max_attempts, "id": str(ctx.job_id)}

    done = await ran(dsn, conn, work, Email(to="ada"))

    assert (done.state, done.attempt) == (State.COMPLETED, 1)
    assert done.output == {"sent": "ada", "attempt": 1, "of": 2, "id": str(done.id)}


async def test_a_synchronous_handler_runs_in_a_thread_and_reports_from_there(dsn: str, conn: Any) -> None:
    @job("work")
    def work(payload: dict[str, int], ctx: SyncContext) -> str:
        ctx.progress({"half": payload["n"]})
        ctx.emit("told")
        ctx.enqueue("other", {"n": 1}, delay="1h")
        return threading.current_thread().name

    done = await ran(dsn, conn, work, {"n": 21})

    assert (done.progress, done.output) == ({"half": 21}, "ostinato-handler")
    assert [told.event for told in await store.list_events(conn, done.id)] == ["told"]
    assert [each.job_type for each in await store.list_jobs(conn)] == ["other", "work"]


async def test_a_class_is_made_anew_for_each_attempt_and_its_hooks_are_called_in_order(dsn: str, conn: Any) -> None:
    calls: list[Any] = []

    @job("work", on_end=lambda ctx: calls.append("end"))
    class Work:
        def __init__(self) -> None:
            calls.append("made")

        async def execute(self, payload: dict[str, Any], ctx: Context) -> int:
            calls.append("execute")
            if ctx.attempt == 1:
                raise TransientError("not yet", retry_after=0)
            return 7

        async def on_start(self, ctx: Context) -> None:
            calls.append("start")

        def on_success(self, ctx: Context, output: Any) -> None:
            calls.append(("success", output))

        def on_fail(self, ctx: Context, error: Any) -> None:
            calls.append(("fail", error.code))
            raise RuntimeError("a hook changes nothing")

    handler: Any = Work  # a checker does not follow what a decorator makes of a class
    done = await ran(dsn, conn, handler, {})

    assert (done.state, done.attempt) == (State.COMPLETED, 2)
    assert calls == [
        *("made", "start", "execute", ("fail", "HANDLER_ERROR"), "end"),
        *("made", "start", "execute", ("success", 7), "end"),
    ]


def refuse(error: BaseException) -> Any:
    async def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("boom"), "HANDLER_ERROR", "ValueError: boom"),
        (TransientError("busy", code="UPSTREAM_5XX"), "UPSTREAM_5XX", "busy"),
        (KeyboardInterrupt(), "HANDLER_ERROR", "KeyboardInterrupt"),
        (SystemExit(3), "HANDLER_ERROR", "SystemExit: 3"),
        (asyncio.CancelledError(), "HANDLER_ERROR", "CancelledError"),
        (StopAsyncIteration("odd"), "HANDLER_ERROR", "StopAsyncIteration: odd"),
        (ValueError("nul \0 and half \ud800"), "HANDLER_ERROR", "ValueError: nul"),
    ],
)
@pytest.mark.parametrize("waits", [False, True])
async def test_whatever_a_handler_raises_it_is_tried_again_with_its_code(
    dsn: str, conn: Any, error: BaseException, code: str, message: str, waits: bool
) -> None:
    @job("work", backoff=Fixed("1h"))
    async def work() -> None:
        if waits:
            await asyncio.sleep(0)
        raise error

    done = await ran(dsn, conn, work)

    assert (done.state, done.attempt, done.error_code) == (State.RETRYING, 1, code)
    assert (done.error_message or "").startswith(message)
    assert timedelta(minutes=59) < done.run_at - done.attempts[0].finished < timedelta(minutes=61)


async def test_a_thread_may_raise_anything_too(dsn: str, conn: Any) -> None:
    @job("work", backoff="1h")
    def work() -> None:
        raise StopIteration("odd")

    done = await ran(dsn, conn, work)

    assert (done.state, done.error_code) == (State.RETRYING, "HANDLER_ERROR")
    assert "StopIteration: odd" in (done.error_message or "")


async def test_retry_after_comes_before_the_backoff(dsn: str, conn: Any) -> None:
    @job("work", backoff="1s")
    async def work() -> None:
        raise TransientError("busy", code="RATE_LIMITED", retry_after="2h")

    done = await ran(dsn, conn, work)

    assert timedelta(minutes=119) < done.run_at - done.attempts[0].finished < timedelta(minutes=121)


async def test_after_the_last_attempt_it_is_a_dead_letter(dsn: str, conn: Any) -> None:
    @job("work", backoff=0, max_attempts=3)
    async def work() -> None:
        raise ValueError("boom")

    done = await ran(dsn, conn, work)

    assert (done.state, done.attempt, [each.code for each in done.attempts]) == (
        State.DEAD_LETTERED,
        3,
        ["HANDLER_ERROR"] * 3,
    )


async def test_a_permanent_error_is_not_tried_again(dsn: str, conn: Any) -> None:
    done = await ran(dsn, conn, job("work")(refuse(PermanentError("no such address", code="NOT_FOUND"))))

    assert (done.state, done.attempt, done.error_code) == (State.DEAD_LETTERED, 1, "NOT_FOUND")


async def test_a_payload_that_does_not_fit_its_type_is_not_tried_at_all(dsn: str, conn: Any) -> None:
    called = []

    @job("work")
    async def work(payload: Email) -> None:
        called.append(payload)

    done = await ran(dsn, conn, work, {"from": "ada"})

    assert (done.state, done.error_code, called) == (State.DEAD_LETTERED, "PAYLOAD_INVALID", [])
    assert "to\n  Field required" in (done.error_message or "")


async def test_an_output_that_is_no_json_is_an_error_that_names_the_rule(dsn: str, conn: Any) -> None:
    @job("work")
    async def work() -> object:
        return {"n": float("nan")}

    done = await ran(dsn, conn, work)

    assert (done.state, done.error_code) == (State.DEAD_LETTERED, "OUTPUT_INVALID")
    assert "JSON has no number nan" in (done.error_message or "")


async def test_a_generator_is_read_once(dsn: str, conn: Any) -> None:
    @job("work")
    async def work() -> Any:
        return (number for number in (1, 2))

    assert (await ran(dsn, conn, work)).output == [1, 2]


class Hopeless(PermanentError):
    def __init__(self) -> None:
        """Does not call the class that it stands on."""

    def __str__(self) -> str:
        raise RuntimeError("nor can it be printed")


async def test_a_permanent_error_is_one_whatever_else_it_lacks(dsn: str, conn: Any) -> None:
    assert (await ran(dsn, conn, job("work")(refuse(Hopeless())))).state is State.DEAD_LETTERED


async def test_a_wait_that_is_over_already_is_none(dsn: str, conn: Any) -> None:
    error = TransientError("limited", code="RATE_LIMITED", retry_after=-0.5)

    done = await ran(dsn, conn, job("work", backoff="1h")(refuse(error)))

    assert [(each.code, each.message) for each in done.attempts] == [("RATE_LIMITED", "limited")] * 2
    assert Snooze(-1).delay == timedelta(0)


async def test_snooze_waits_and_spends_no_attempt(dsn: str, conn: Any) -> None:
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)

    done = await ran(dsn, conn, job("work")(refuse(Snooze(at))))

    assert (done.state, done.attempt, done.run_at) == (State.PENDING, 0, at)


async def test_a_handler_that_takes_too_long_is_cancelled_and_tried_again(dsn: str, conn: Any) -> None:
    @job("work", timeout="50ms", backoff="1h")
    async def work() -> None:
        await asyncio.Event().wait()

    done = await ran(dsn, conn, work)

    assert (done.state, done.error_code, done.error_message) == (
        State.RETRYING,
        "TIMEOUT",
        "it took longer than 0.05 s",
    )


async def test_a_handler_that_returns_after_its_timeout_has_not_completed(dsn: str, conn: Any) -> None:
    @job("work", timeout="50ms", backoff="1h")
    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "as if nothing had happened"
        return ""

    done = await ran(dsn, conn, work)

    assert (done.state, done.error_code, done.output) == (State.RETRYING, "TIMEOUT", None)


async def test_a_handler_that_swallows_its_cancellation_does_not_hold_up_its_job(dsn: str, conn: Any) -> None:
    free = asyncio.Event()

    @job("work", timeout="50ms", backoff="1h")
    async def work() -> None:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    made = await work.enqueue(conn)
    worker = Worker(dsn, [work], settings=SETTINGS, stop_grace="100ms")
    await asyncio.wait_for(worker.drain(), 20)
    done = await store.get_job(conn, made.id)
    free.set()

    assert (done.state, done.error_code) == (State.RETRYING, "TIMEOUT")


async def test_a_thread_that_takes_too_long_is_told_and_not_waited_for(dsn: str, conn: Any) -> None:
    free, told = threading.Event(), threading.Event()

    @job("work", timeout="50ms", backoff="1h")
    def work(ctx: SyncContext) -> None:
        if ctx.cancelled.wait_in_thread(10):
            told.set()
        free.wait(10)

    made = await work.enqueue(conn)
    worker = Worker(dsn, [work], settings=SETTINGS, stop_grace="100ms")
    await asyncio.wait_for(worker.drain(), 20)
    done = await store.get_job(conn, made.id)
    free.set()

    assert (done.state, done.error_code, told.is_set()) == (State.RETRYING, "TIMEOUT", True)


async def test_asyncio_timeouts_inside_a_handler_are_its_own(dsn: str, conn: Any) -> None:
    @job("work")
    async def work() -> str:
        task = asyncio.current_task()
        try:
            async with asyncio.timeout(0.02):
                await asyncio.Event().wait()
        except TimeoutError:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(0))
            return "mine" if asyncio.current_task() is task else "somebody else's"
        return "never"

    done = await ran(dsn, conn, work)

    assert (done.state, done.output) == (State.COMPLETED, "mine")


async def test_attempts_do_not_see_each_others_context_variables(dsn: str, conn: Any) -> None:
    from contextvars import ContextVar

    seen: ContextVar[str] = ContextVar("seen", default="nothing")
    found: list[str] = []

    @job("work")
    async def work(payload: dict[str, Any]) -> None:
        found.append(seen.get())
        seen.set(str(payload["n"]))
        if payload["n"] % 2:
            await asyncio.sleep(0)
        found.append(seen.get())

    await enqueue_many(conn, [work.new({"n": n}) for n in range(4)])
    await Worker(dsn, [work]).drain()

    assert sorted(found) == ["0", "1", "2", "3", *["nothing"] * 4]


async def test_what_the_application_makes_at_start_up_reaches_every_handler_and_is_closed(dsn: str, conn: Any) -> None:
    story: list[str] = []

    @asynccontextmanager
    async def state() -> Any:
        story.append("opened")
        yield {"shop": "ostinato"}
        story.append("closed")

    @job("work")
    async def work(ctx: Context) -> Any:
        story.append("ran")
        return ctx.state

    made = await work.enqueue(conn)
    await Worker(dsn, [work], state=state).drain()

    assert (await store.get_job(conn, made.id)).output == {"shop": "ostinato"}
    assert story == ["opened", "ran", "closed"]


async def test_versions_have_handlers_of_their_own(dsn: str, conn: Any) -> None:
    @job("work")
    async def old() -> str:
        return "old"

    @job("work", version=2)
    async def new() -> str:
        return "new"

    one, two, three = [await enqueue(conn, "work", job_version=version) for version in (1, 2, 3)]
    await Worker(dsn, [old, new]).drain()

    assert (await store.get_job(conn, one.id)).output == "old"
    assert (await store.get_job(conn, two.id)).output == "new"
    assert (await store.get_job(conn, three.id)).state is State.PENDING


async def test_a_job_may_say_otherwise_than_its_type(dsn: str, conn: Any) -> None:
    @job("work", max_attempts=9, timeout="1h", backoff=0)
    async def work() -> None:
        await asyncio.Event().wait()

    done = await ran(dsn, conn, work, max_attempts=1, timeout="30ms")

    assert (done.state, done.attempt, done.error_code) == (State.DEAD_LETTERED, 1, "TIMEOUT")

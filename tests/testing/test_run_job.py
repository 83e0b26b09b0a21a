"""One attempt of a handler, without a database."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ostinato import Context, InvalidArgument, NewJob, PermanentError, Snooze, TransientError, job
from ostinato.testing import Clock, assert_enqueued, assert_not_enqueued, run_job
from tests.testing import handlers
from tests.testing.handlers import Email

NEW_YEAR = datetime(2030, 1, 1, tzinfo=UTC)


async def test_what_a_handler_returns_is_the_output() -> None:
    outcome = await run_job(handlers.send_email, Email(to="ada"), attempt=2)

    assert outcome.state == "completed"
    assert outcome.output == outcome.result() == {"sent": "ada", "attempt": 2, "of": 3}


async def test_a_payload_that_does_not_fit_is_refused_as_the_worker_refuses_it() -> None:
    outcome = await run_job(handlers.send_email, {"for": "ada"})

    assert (outcome.state, outcome.code, outcome.raised) == ("dead_lettered", "PAYLOAD_INVALID", None)
    with pytest.raises(PermanentError, match="Field required"):
        outcome.result()


async def test_a_payload_that_could_not_be_enqueued_is_an_error_of_the_test() -> None:
    with pytest.raises(InvalidArgument, match="payload is"):
        await run_job(handlers.send_email, ["ada"])


@pytest.mark.parametrize(
    ("to", "attempt", "state", "code", "delay", "error"),
    [
        ("busy", 1, "retrying", "UPSTREAM_5XX", timedelta(seconds=90), TransientError),
        ("broken", 1, "retrying", "HANDLER_ERROR", timedelta(seconds=10), KeyError),
        ("broken", 3, "dead_lettered", "HANDLER_ERROR", None, KeyError),
        ("gone", 1, "dead_lettered", "NOT_FOUND", None, PermanentError),
        ("later", 1, "pending", None, timedelta(minutes=5), Snooze),
    ],
)
async def test_what_a_handler_raises_comes_to_what_it_would_in_a_worker(
    to: str, attempt: int, state: str, code: str | None, delay: timedelta | None, error: type[Exception]
) -> None:
    outcome = await run_job(handlers.send_email, {"to": to}, attempt=attempt)

    assert (outcome.state, outcome.code, outcome.delay) == (state, code, delay)
    assert isinstance(outcome.raised, error)
    with pytest.raises(error):
        outcome.result()


async def test_a_synchronous_handler_runs_in_a_thread_and_what_it_asks_for_is_noted() -> None:
    outcome = await run_job(handlers.resize, {"width": 80}, last_progress=40, namespace="shop")

    assert outcome.output == "ostinato-handler"
    assert outcome.progress == [{"from": 40, "to": 80}]
    assert outcome.events == ["resized"]
    assert outcome.enqueued == [NewJob("send_email", {"to": "ada"}, namespace="shop", delay="1h")]


def test_a_test_that_is_not_asynchronous_runs_it_too() -> None:
    assert asyncio.run(run_job(handlers.resize, {"width": 80})).state == "completed"


async def test_what_could_not_be_enqueued_or_stored_fails_the_attempt() -> None:
    @job("odd")
    async def odd(payload: dict[str, Any], ctx: Context) -> object:
        if payload:
            await ctx.enqueue("work", **payload)
        return object()

    assert (await run_job(odd)).code == "OUTPUT_INVALID"
    assert isinstance((await run_job(odd, {"delay": "often"})).raised, InvalidArgument)
    assert isinstance((await run_job(odd, {"often": 1})).raised, TypeError)


async def test_hooks_are_called_around_it() -> None:
    calls: list[str] = []

    @job("work", on_end=lambda ctx: calls.append("end"))
    class Work:
        async def on_start(self, ctx: Context) -> None:
            calls.append("start")

        async def execute(self) -> None:
            calls.append("execute")

        def on_success(self, ctx: Context, output: Any) -> None:
            calls.append("success")

    await run_job(Work)

    assert calls == ["start", "execute", "success", "end"]


async def test_a_class_that_cannot_be_made_is_a_failure_of_the_attempt() -> None:
    @job("work")
    class Work:
        def __init__(self) -> None:
            raise LookupError("no template")

        def execute(self) -> None: ...

    outcome = await run_job(Work)

    assert (outcome.state, outcome.code) == ("retrying", "HANDLER_ERROR")
    with pytest.raises(LookupError):
        outcome.result()


async def test_a_test_that_gives_up_leaves_no_attempt_behind() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @job("endless")
    async def endless() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    running = asyncio.create_task(run_job(endless))
    await begun.wait()
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.wait_for(ended.wait(), 10)


async def test_a_handler_that_is_told_to_stop_is_cancelled() -> None:
    @job("work")
    async def work(ctx: Context) -> None:
        ctx.cancelled.set("cancelled")
        raise ValueError("stopped half-way")

    outcome = await run_job(work)

    assert (outcome.state, outcome.message) == ("cancelled", "ValueError: stopped half-way")


async def test_it_has_the_state_context_and_clock_that_the_test_gives() -> None:
    @job("look")
    async def look(ctx: Context) -> list[Any]:
        return [ctx.state, ctx.context, ctx.now().isoformat(), ctx.run_at.isoformat(), ctx.queue]

    clock = Clock(NEW_YEAR)
    clock.advance("1h")
    outcome = await run_job(look, state="pool", context={"tenant": "a"}, clock=clock, queue="slow")

    assert outcome.output == ["pool", {"tenant": "a"}, *["2030-01-01T01:00:00+00:00"] * 2, "slow"]


async def test_a_snooze_until_a_time_is_told_by_the_clock_of_the_test() -> None:
    @job("wait")
    async def wait() -> None:
        raise Snooze(NEW_YEAR)

    outcome = await run_job(wait, clock=Clock(NEW_YEAR - timedelta(days=1)))

    assert (outcome.state, outcome.delay) == ("pending", timedelta(days=1))


async def test_a_timeout_ends_it_as_in_a_worker() -> None:
    @job("slow", timeout="20ms")
    async def slow() -> None:
        await asyncio.Event().wait()

    outcome = await run_job(slow)

    assert (outcome.state, outcome.code) == ("retrying", "TIMEOUT")
    with pytest.raises(TransientError, match=r"longer than 0\.02 s"):
        outcome.result()


async def test_an_isolated_handler_runs_where_the_test_does_without_the_workers_state() -> None:
    @job("stateful", isolation="process")
    async def stateful(ctx: Context) -> Any:
        return ctx.state

    outcome = await run_job(handlers.greet, {"name": "ada"})

    assert (outcome.output, outcome.progress) == ("hello ada", [1])
    with pytest.raises(RuntimeError, match="no part in the worker's state"):
        (await run_job(stateful, state="pool")).result()


async def test_a_transactional_handler_works_in_the_transaction_of_the_test(conn: Any) -> None:
    await conn.execute("create table payments (amount int)")
    transaction = conn.transaction()
    await transaction.start()

    paid = await run_job(handlers.pay, {"amount": 5}, tx=conn)

    assert (paid.state, paid.output) == ("completed", 5)
    assert [new.job_type for new in paid.enqueued] == ["send_email"]
    await assert_enqueued(conn, "send_email", {"to": "ada"})
    assert await conn.fetchval("select sum(amount) from payments") == 5
    await transaction.rollback()
    await assert_not_enqueued(conn)
    assert await conn.fetchval("select count(*) from payments") == 0


async def test_what_a_transactional_handler_did_before_it_failed_is_undone(conn: Any) -> None:
    await conn.execute("create table payments (amount int)")
    async with conn.transaction():
        failed = await run_job(handlers.pay, {"amount": -5}, tx=conn)

        assert failed.state == "dead_lettered"
        assert await conn.fetchval("select count(*) from payments") == 0
        await assert_not_enqueued(conn)


async def test_a_transactional_handler_needs_a_transaction_and_another_has_none(conn: Any) -> None:
    with pytest.raises(InvalidArgument, match="a transaction has begun"):
        await run_job(handlers.pay, {"amount": 5})
    with pytest.raises(InvalidArgument, match="a transaction has begun"):
        await run_job(handlers.pay, {"amount": 5}, tx=conn)
    with pytest.raises(InvalidArgument, match="send_email is not transactional"):
        await run_job(handlers.send_email, {"to": "ada"}, tx=conn)


async def test_only_handlers_are_run() -> None:
    with pytest.raises(InvalidArgument, match="under @job"):
        await run_job(lambda: None)  # type: ignore[arg-type]


def test_a_clock_has_a_time_zone_and_stands_still_until_it_is_told() -> None:
    clock = Clock()

    assert clock.now() == clock.now()
    clock.set(NEW_YEAR)
    assert clock.now() == NEW_YEAR
    with pytest.raises(InvalidArgument, match="time zone"):
        clock.set(NEW_YEAR.replace(tzinfo=None))

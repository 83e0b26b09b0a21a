"""Running what is due, and letting time pass."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import psycopg
import pytest

from ostinato import enqueue, enqueue_many, job
from ostinato.testing import Clock, advance, drain, enqueued
from tests.testing import handlers

NEW_YEAR = datetime(2030, 1, 1, tzinfo=UTC)


async def states(conn: Any) -> list[tuple[str, str]]:
    return [(found.job_type, str(found.state)) for found in await enqueued(conn)]


async def test_what_is_due_is_run_and_what_that_enqueues(dsn: str, conn: Any) -> None:
    await handlers.resize.enqueue(conn, {"width": 80})
    await handlers.resize.enqueue(conn, {"width": 80}, delay="1h")

    counts = await drain(dsn, [handlers.resize])

    assert counts == {"completed": 1}
    assert await states(conn) == [("resize", "completed"), ("resize", "pending"), ("send_email", "pending")]


async def test_a_pool_of_the_tests_own_will_do(dsn: str, conn: Any) -> None:
    async with asyncpg.create_pool(dsn, min_size=0, max_size=6) as pool:
        await enqueue(pool, "tell_time")
        await enqueue(pool, "tell_time", delay="1h")

        assert await drain(pool, handlers.tell_time, until_empty=True) == {"completed": 2}


async def test_until_it_is_empty_time_passes_for_retries_and_delayed_jobs_in_their_order(dsn: str, conn: Any) -> None:
    order: list[Any] = []

    @job("note", max_attempts=3, backoff=["1h", "1d"])
    async def note(payload: dict[str, Any]) -> None:
        order.append(payload["name"])
        if payload["name"] == "bad":
            raise ValueError(payload)

    await note.enqueue(conn, {"name": "late"}, delay="30d")
    await note.enqueue(conn, {"name": "bad"})
    await note.enqueue(conn, {"name": "soon"}, delay="2h")
    await enqueue(conn, "others", delay="1h")

    counts = await drain(dsn, [note], until_empty=True)

    assert order == ["bad", "bad", "soon", "bad", "late"]
    assert counts == {"completed": 2, "retried": 2, "dead_lettered": 1}
    assert ("others", "pending") in await states(conn)


async def test_a_job_that_enqueues_itself_does_not_run_for_ever(dsn: str, conn: Any) -> None:
    await handlers.again.enqueue(conn)

    with pytest.raises(AssertionError, match=r"still not done, after \{'completed': 1.\}.*does a job enqueue itself"):
        await asyncio.wait_for(drain(dsn, [handlers.again], at_most=9), 30)


async def test_neither_does_one_that_does_so_for_later(dsn: str, conn: Any) -> None:
    @job("nightly")
    async def nightly(ctx: Any) -> None:
        await ctx.enqueue("nightly", delay="1d")

    await nightly.enqueue(conn)

    with pytest.raises(AssertionError, match="at_most"):
        await asyncio.wait_for(drain(dsn, [nightly], until_empty=True, at_most=3), 30)


async def test_handlers_are_told_the_time_of_the_test_which_goes_along(dsn: str, conn: Any) -> None:
    first = await handlers.tell_time.enqueue(conn)
    later = await handlers.tell_time.enqueue(conn, delay="1h")
    isolated = await handlers.tell_time_isolated.enqueue(conn)
    clock = Clock(NEW_YEAR)

    await drain(dsn, [handlers.tell_time, handlers.tell_time_isolated], until_empty=True, clock=clock)

    told = {found.id: datetime.fromisoformat(found.output) for found in await enqueued(conn)}
    assert told[first.id] == NEW_YEAR
    assert NEW_YEAR + timedelta(minutes=59) < told[later.id] <= NEW_YEAR + timedelta(hours=1)
    assert NEW_YEAR <= told[isolated.id] < NEW_YEAR + timedelta(hours=1)


async def test_without_a_clock_it_is_the_databases_time(dsn: str, conn: Any) -> None:
    before = await conn.fetchval("select clock_timestamp()")
    made = await handlers.tell_time.enqueue(conn)

    await drain(dsn, [handlers.tell_time])

    (found,) = await enqueued(conn)
    told = datetime.fromisoformat(found.output)
    assert found.id == made.id
    assert before - timedelta(seconds=1) < told < await conn.fetchval("select clock_timestamp()") + timedelta(seconds=1)


async def test_time_passes_for_what_waits(dsn: str, conn: Any) -> None:
    await enqueue(conn, "work", delay="1h")
    await enqueue(conn, "work", delay="3h", idempotency_key="k", idempotency_ttl="2h")

    assert await advance(conn, "59m") == 0
    assert await advance(conn, "1m") == 1
    assert not (await enqueue(conn, "work", idempotency_key="k")).created
    assert await advance(conn, "61m") == 1
    assert (await enqueue(conn, "work", idempotency_key="k")).created

    assert await advance(conn, "1h") == 3
    assert len(await enqueued(conn, delay="1h")) == 1


async def test_time_passes_for_what_is_rationed(dsn: str, conn: Any) -> None:
    @job("rationed", rate="1/h")
    async def rationed() -> None: ...

    for _ in range(2):
        await rationed.enqueue(conn)

    assert await drain(dsn, [rationed]) == {"completed": 1}
    assert await drain(dsn, [rationed]) == {}
    await advance(conn, "1h")
    assert await drain(dsn, [rationed]) == {"completed": 1}


async def test_until_it_is_empty_time_passes_for_rates_too(dsn: str, conn: Any) -> None:
    order: list[str] = []

    @job("rationed", rate="1/h")
    async def rationed() -> None:
        order.append("rationed")

    @job("other")
    async def other() -> None:
        order.append("other")

    for _ in range(4):
        await rationed.enqueue(conn)
    await other.enqueue(conn, delay="90m")
    clock = Clock(NEW_YEAR)

    assert await drain(dsn, [rationed, other], until_empty=True, clock=clock) == {"completed": 5}

    assert order == ["rationed", "rationed", "other", "rationed", "rationed"]
    assert timedelta(hours=2.9) < clock.now() - NEW_YEAR <= timedelta(hours=3)


async def test_until_it_is_empty_a_rate_lets_run_as_many_at_once_as_it_may(dsn: str, conn: Any) -> None:
    @job("rationed", rate="20/h")
    async def rationed() -> None: ...

    await enqueue_many(conn, [rationed.new() for _ in range(50)])
    clock = Clock(NEW_YEAR)

    assert await drain(dsn, [rationed], until_empty=True, clock=clock) == {"completed": 50}

    assert clock.now() - NEW_YEAR < timedelta(hours=2)


def test_on_a_synchronous_connection_and_undone_with_its_transaction(dsn: str) -> None:
    with psycopg.connect(dsn) as conn:
        enqueue(conn, "work", delay="1h")
        conn.commit()

        assert advance(conn, timedelta(hours=1)) == 1
        conn.rollback()
        assert advance(conn, "1s") == 0


async def test_even_the_last_job_of_all_comes_to_its_turn(dsn: str, conn: Any) -> None:
    await handlers.tell_time.enqueue(conn, run_at=datetime(9998, 12, 31, tzinfo=UTC))

    assert await drain(dsn, [handlers.tell_time], until_empty=True) == {"completed": 1}

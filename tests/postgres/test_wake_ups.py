"""Who waits is told: whatever makes a job ready sends a notification, once, while somebody is idle."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from ostinato import NewJob, enqueue, enqueue_many, store
from tests.postgres.actors import Actor, hire

Connect = Callable[[], Awaitable[Any]]
NOTHING = timedelta(0)
HEARD = "default/default/0"


async def listening(connect: Connect) -> "asyncio.Queue[str]":
    """An idle worker's ear. Whatever is said comes in the order in which it was committed."""
    conn, heard = await connect(), asyncio.Queue[str]()
    await conn.add_listener("ostinato_jobs", lambda *said: heard.put_nowait(str(said[-1])))
    await store.mark_idle(conn, (await hire(conn)).id, idle=True)
    return heard


async def end_of(conn: Any, heard: "asyncio.Queue[str]") -> list[str]:
    """All that was heard until now."""
    await conn.execute("select pg_notify('ostinato_jobs', 'end')")
    said = []
    while (one := await asyncio.wait_for(heard.get(), 10)) != "end":
        said.append(one)
    return said


async def release(actor: Actor) -> None:
    await store.release(actor.conn, await actor.claim(2))


async def retry(actor: Actor) -> None:
    await store.retry(actor.conn, (await actor.claim_one()).held, delay=NOTHING, code="X", message="boom")


async def retry_later(actor: Actor) -> None:
    job = await actor.claim_one()
    await store.retry(actor.conn, job.held, delay=timedelta(hours=1), code="X", message="boom")


async def snooze(actor: Actor) -> None:
    await store.snooze(actor.conn, (await actor.claim_one()).held, delay=NOTHING)


async def recover(actor: Actor) -> None:
    await actor.claim(2)
    await store.retire_workers(actor.conn, [actor.id])
    await store.recover(actor.conn, max_attempts=5, poison=3)


async def hasten(actor: Actor) -> None:
    later = await enqueue(actor.conn, "work", delay="1h")
    await store.hasten(actor.conn, later.id)


async def redrive(actor: Actor) -> None:
    job = await actor.claim_one()
    await store.dead_letter(actor.conn, job.held, code="X", message="boom")
    await store.redrive(actor.conn, [job.id])


async def enqueue_later_by_sql(actor: Actor) -> None:
    await actor.conn.execute("select ostinato.enqueue('work', delay => '1 hour')")


async def enqueue_by_sql(actor: Actor) -> None:
    await actor.conn.execute("select ostinato.enqueue('work')")


@pytest.mark.parametrize(
    ("act", "times"),
    [
        (release, 1),
        (retry, 1),
        (retry_later, 0),
        (snooze, 1),
        (recover, 1),
        (hasten, 1),
        (redrive, 1),
        (enqueue_by_sql, 1),
        (enqueue_later_by_sql, 0),
    ],
)
async def test_what_becomes_ready_is_told_once(
    connect: Connect, act: Callable[[Actor], Awaitable[None]], times: int
) -> None:
    conn = await connect()
    actor = await hire(conn)
    await enqueue(conn, "work")
    await enqueue(conn, "work")
    heard = await listening(connect)

    await act(actor)

    assert await end_of(conn, heard) == [HEARD] * times


async def test_whoever_waits_for_a_slot_or_a_key_is_told_when_it_is_free(connect: Connect) -> None:
    conn = await connect()
    limited = await hire(conn, store.JobType(name="limited", limit=store.Limit(max_running=1)), "keyed")
    await enqueue(conn, "limited")
    await enqueue(conn, "keyed", concurrency_key="k")
    jobs = await limited.claim(5)
    heard = await listening(connect)

    for job in jobs:
        await store.complete(conn, [job])

    assert len(jobs) == 2
    assert await end_of(conn, heard) == [HEARD] * 2


async def test_a_user_with_rights_on_the_tables_alone_tells_idle_workers_too(dsn: str, connect: Connect) -> None:
    conn = await connect()
    with suppress(asyncpg.DuplicateObjectError):
        await conn.execute("create role service login")
    await conn.execute("grant usage on schema ostinato to service")
    await conn.execute("grant select, insert, update, delete on all tables in schema ostinato to service")
    service = await asyncpg.connect(dsn.replace("postgres@", "service@"))
    heard = await listening(connect)

    await enqueue(service, "work")
    await store.mark_idle(service, (await hire(service)).id, idle=True)
    await service.close()

    assert await end_of(conn, heard) == [HEARD]


async def test_a_claim_does_not_wait_for_a_job_that_somebody_else_holds(connect: Connect) -> None:
    conn, other = await connect(), await connect()
    first, second = [(await enqueue(conn, "work")).id for _ in range(2)]
    actor = await hire(conn)
    await conn.execute("set lock_timeout = '5s'")

    async with other.transaction():
        await other.fetchval("select id from ostinato.jobs where id = $1 for update", first)
        claimed = await actor.claim(5)

    assert [job.id for job in claimed] == [second]


async def test_recovery_does_not_wait_for_a_job_that_somebody_else_holds(connect: Connect) -> None:
    conn, other = await connect(), await connect()
    actor = await hire(conn)
    for _ in range(2):
        await enqueue(conn, "work")
    first, _ = await actor.claim(2)
    await store.retire_workers(conn, [actor.id])
    await conn.execute("set lock_timeout = '5s'")

    async with other.transaction():
        await other.fetchval("select id from ostinato.jobs where id = $1 for update", first.id)
        recovered = await store.recover(conn, max_attempts=5, poison=3)

    assert recovered.returned == 1


async def test_many_at_once_are_told_once(connect: Connect) -> None:
    conn = await connect()
    heard = await listening(connect)

    await enqueue_many(conn, [NewJob("work")] * 3)

    assert await end_of(conn, heard) == [HEARD]

"""What brings a job back: redriving dead letters, recovering what dead workers held."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from ostinato import NewJob, enqueue, enqueue_many, store
from tests.postgres.actors import Actor, hire, room_of, until_blocked

Connect = Callable[[], Awaitable[Any]]
SECOND = timedelta(seconds=1)


@pytest.fixture
async def actor(conn: Any) -> Actor:
    return await hire(conn)


async def buried(actor: Actor, **options: Any) -> UUID:
    await enqueue(actor.conn, "work", **options)
    job = await actor.claim_one()
    await store.dead_letter(actor.conn, job.held, code="X", message="boom")
    return job.id


async def test_attempts_are_counted_up_to_the_largest_number_and_no_further(actor: Actor) -> None:
    job_id = await buried(actor)
    await actor.conn.execute("update ostinato.dead_letters set attempt = 32767 where id = $1", job_id)
    await store.redrive(actor.conn, [job_id])

    job = await actor.claim_one()

    assert job.attempt == 32767
    assert await store.complete(actor.conn, [job.held]) == set()


async def test_redrive_moves_dead_letters_back_and_keeps_what_happened(actor: Actor) -> None:
    job_id = await buried(actor)

    assert await store.redrive(actor.conn, [job_id, UUID(int=0)]) == {job_id}

    job = await actor.claim_one()
    found = await store.get_job(actor.conn, job_id)
    assert (job.id, job.attempt) == (job_id, 2)
    assert [attempt.code for attempt in found.attempts] == ["X"]
    assert await room_of(actor.conn, job_id) == "jobs"


async def test_redrive_can_wait_and_can_begin_the_attempts_anew(actor: Actor) -> None:
    at = datetime(2040, 1, 1, tzinfo=UTC)
    later, soon = await buried(actor), await buried(actor)

    await store.redrive(actor.conn, [later], at=at, reset_attempts=True)
    await store.redrive(actor.conn, [soon], delay=timedelta(hours=1))

    waiting = await store.get_job(actor.conn, later)
    assert (waiting.run_at, waiting.attempt) == (at, 0)
    assert (await store.get_job(actor.conn, soon)).run_at > datetime.now(UTC) + timedelta(minutes=59)


async def test_redrive_is_possible_while_another_job_has_the_dedup_key(actor: Actor) -> None:
    job_id = await buried(actor, dedup_key="k")
    await enqueue(actor.conn, "work", dedup_key="k")

    assert await store.redrive(actor.conn, [job_id]) == {job_id}


async def test_redriving_by_a_filter_works_through_pages(actor: Actor) -> None:
    await enqueue_many(actor.conn, [NewJob("work", {"n": n}, context={"tenant": n % 2}) for n in range(10)])
    for job in await actor.claim(10):
        await store.dead_letter(actor.conn, job.held, code="X", message="boom")
    chosen = store.JobFilter(job_type="work", context={"tenant": 1})

    redriven = set()
    while page := await store.list_dead_letters(actor.conn, chosen, limit=2):
        redriven |= await store.redrive(actor.conn, page)

    assert len(redriven) == 5
    assert await actor.conn.fetchval("select count(*) from ostinato.dead_letters") == 5


async def test_recover_takes_back_what_a_dead_worker_held_and_counts_the_crash(connect: Connect) -> None:
    conn = await connect()
    dead, alive = await hire(conn, lease=timedelta(0)), await hire(conn)
    await enqueue_many(conn, [NewJob("work")] * 4)
    lost, kept = await dead.claim(3), await alive.claim(1)

    assert await store.expire_workers(conn) == {dead.id}
    recovered = await store.recover(conn, max_attempts=5, poison=3)

    assert recovered == store.Recovered(returned=3, buried=0, cancelled=0)
    assert (await store.get_job(conn, kept[0].id)).state == "running"
    job = await store.get_job(conn, lost[0].id)
    assert (job.state, job.attempt, job.error_code) == ("pending", 1, "LEASE_EXPIRED")
    assert [(attempt.code, attempt.worker) for attempt in job.attempts] == [("LEASE_EXPIRED", dead.id)]
    assert await store.renew_worker(conn, dead.id, lease=SECOND) is None
    assert await store.recover(conn, max_attempts=5, poison=3) == store.Recovered(0, 0, 0)


async def test_recover_buries_what_is_out_of_attempts_or_poisonous_and_ends_what_was_called_off(conn: Any) -> None:
    types = [store.JobType(name="work"), store.JobType(name="once", max_attempts=1)]
    await enqueue_many(conn, [NewJob("work", max_attempts=2), NewJob("work", max_attempts=9), NewJob("once")])
    off = await enqueue(conn, "work", priority=-1)
    ends: list[str] = []
    for crash in range(3):
        actor = await hire(conn, *types)
        jobs = await actor.claim(10)
        if crash == 0:
            await store.cancel(conn, off.id)
        await store.retire_workers(conn, [actor.id])
        recovered = await store.recover(conn, max_attempts=5, poison=3)
        ends.append(f"{len(jobs)}: {recovered.returned} {recovered.buried} {recovered.cancelled}")

    assert ends == ["4: 2 1 1", "2: 1 1 0", "1: 0 1 0"]
    rows = await conn.fetch("select job_type, max_attempts, attempt, error_code from ostinato.dead_letters order by id")
    assert [tuple(row) for row in rows] == [
        ("work", 2, 2, "LEASE_EXPIRED"),
        ("work", 9, 3, "POISON"),
        ("once", None, 1, "LEASE_EXPIRED"),
    ]
    assert (await store.get_job(conn, off.id)).state == "cancelled"


async def test_a_renewal_and_an_expiry_at_the_same_moment_agree(connect: Connect) -> None:
    first, second = await connect(), await connect()
    actor = await hire(first, lease=timedelta(0))
    transaction = first.transaction()
    await transaction.start()
    assert await store.renew_worker(first, actor.id, lease=timedelta(hours=1))

    expiring = asyncio.create_task(store.expire_workers(second))
    await until_blocked(first, second)
    await transaction.commit()

    assert await expiring == set()


async def test_attempts_that_begin_anew_begin_anew_for_poison_too(conn: Any) -> None:
    job_id = (await enqueue(conn, "work", max_attempts=2)).id
    for _ in range(2):
        doomed = await hire(conn)
        await doomed.claim_one()
        await store.retire_workers(conn, [doomed.id])
        await store.recover(conn, max_attempts=5, poison=3)
    await store.redrive(conn, [job_id], reset_attempts=True)
    last = await hire(conn)
    await last.claim_one()
    await store.retire_workers(conn, [last.id])

    assert (await store.recover(conn, max_attempts=5, poison=3)).returned == 1


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
NO_HANDLER = [store.Unserved("default", "default", "unknown", 1, 1)]


async def aged(conn: Any, worker_id: UUID) -> None:
    """It has been there for longer than the grace."""
    await conn.execute("update ostinato.workers set started_at = now() - interval '2 hours' where id = $1", worker_id)


async def bury(conn: Any) -> list[store.Unserved]:
    return await store.bury_unserved(conn, grace=timedelta(hours=1))


async def test_a_due_job_of_a_type_that_nobody_has_known_for_the_grace_is_a_dead_letter(actor: Actor) -> None:
    await aged(actor.conn, actor.id)
    made = await enqueue(actor.conn, "unknown", run_at=LONG_AGO)
    await enqueue(actor.conn, "work", run_at=LONG_AGO)
    await enqueue(actor.conn, "unknown")

    assert await bury(actor.conn) == NO_HANDLER

    found = await store.get_job(actor.conn, made.id)
    assert (found.state, found.error_code, found.attempt, found.attempts) == ("dead_lettered", "NO_HANDLER", 0, [])
    assert found.error_message == "no worker of namespace default has known version 1 of type unknown since it was due"
    assert await bury(actor.conn) == []
    assert await store.redrive(actor.conn, [made.id]) == {made.id}
    assert await bury(actor.conn) == []  # from now on it is due anew


async def test_a_version_that_nobody_knows_has_no_handler(conn: Any) -> None:
    await aged(conn, (await hire(conn, store.JobType(name="work", version=2))).id)
    await enqueue(conn, "work", run_at=LONG_AGO)
    await enqueue(conn, "work", run_at=LONG_AGO, job_version=2)

    assert await bury(conn) == [store.Unserved("default", "default", "work", 1, 1)]


@pytest.mark.parametrize(
    "left", ["nobody", "only newcomers", "somebody who drains", "another queue", "another namespace"]
)
async def test_where_workers_are_missing_and_not_a_handler_jobs_wait(conn: Any, left: str) -> None:
    queues = ["other"] if left == "another queue" else ["default"]
    namespace = "elsewhere" if left == "another namespace" else "default"
    actor = await hire(conn, queues=queues, namespace=namespace)
    if left != "only newcomers":
        await aged(conn, actor.id)
    if left == "nobody":
        await store.retire_workers(conn, [actor.id])
    if left == "somebody who drains":
        await store.drain_workers(conn, [actor.id])
    await enqueue(conn, "unknown", run_at=LONG_AGO)

    assert await bury(conn) == []


async def test_who_knew_the_type_within_the_grace_may_come_back(conn: Any, actor: Actor) -> None:
    await aged(conn, actor.id)
    other = await hire(conn, "unknown")
    await enqueue(conn, "unknown", run_at=LONG_AGO)
    await store.retire_workers(conn, [other.id])

    assert await bury(conn) == []

    await conn.execute("update ostinato.workers set ended_at = now() - interval '61 minutes' where id = $1", other.id)
    assert await bury(conn) == NO_HANDLER

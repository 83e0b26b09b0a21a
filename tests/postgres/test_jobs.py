"""Looking at jobs: filters, pages, counts."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from ostinato import NewJob, NotFound, enqueue, enqueue_many, store
from ostinato.lifecycle import State
from ostinato.store import JobFilter
from tests.postgres.actors import hire


async def populate(conn: Any) -> dict[str, UUID]:
    """One job in each state, by name."""
    actor = await hire(conn)
    results = await enqueue_many(
        conn, [NewJob("work", {"n": n}, context={"n": n, "even": n % 2 == 0}) for n in range(4)]
    )
    running, failed, dead, done = await actor.claim(4)
    assert [job.id for job in (running, failed, dead, done)] == [result.id for result in results]
    await store.retry(conn, failed.held, delay=timedelta(hours=1), code="FAILED", message="boom")
    await store.dead_letter(conn, dead.held, code="DEAD", message="boom")
    await store.complete(conn, [done])
    pending = await enqueue(conn, "other", queue="mail", namespace="elsewhere")
    cancelled = await enqueue(conn, "work", priority=5)
    await store.cancel(conn, cancelled.id)
    return {
        "running": running.id,
        "retrying": failed.id,
        "dead_lettered": dead.id,
        "completed": done.id,
        "pending": pending.id,
        "cancelled": cancelled.id,
    }


async def test_a_job_is_found_in_whichever_room_it_is(conn: Any) -> None:
    for state, job_id in (await populate(conn)).items():
        assert (await store.get_job(conn, job_id)).state == state

    with pytest.raises(NotFound, match="there is no job"):
        await store.get_job(conn, uuid4())


async def test_each_filter_finds_what_it_names_newest_first(conn: Any) -> None:
    ids = await populate(conn)
    (worker,) = await store.list_workers(conn)
    expected = {
        JobFilter(): ["cancelled", "pending", "completed", "dead_lettered", "retrying", "running"],
        JobFilter(namespace="elsewhere"): ["pending"],
        JobFilter(queue="mail"): ["pending"],
        JobFilter(job_type="other"): ["pending"],
        JobFilter(states=frozenset({State.RUNNING, State.COMPLETED})): ["completed", "running"],
        JobFilter(error_code="DEAD"): ["dead_lettered"],
        JobFilter(error_code="CANCELLED"): ["cancelled"],
        JobFilter(worker_id=worker.id): ["completed", "dead_lettered", "running"],
        JobFilter(schedule_id=uuid4()): [],
        JobFilter(since=datetime.now(UTC) + timedelta(hours=1)): [],
        JobFilter(until=datetime.now(UTC) - timedelta(hours=1)): [],
        JobFilter(namespace="default", job_type="work", error_code="FAILED"): ["retrying"],
    }

    for chosen, names in expected.items():
        assert [job.id for job in await store.list_jobs(conn, chosen)] == [ids[name] for name in names], chosen
    by_context = await store.list_jobs(conn, JobFilter(context={"even": True}))
    assert [job.id for job in by_context] == [ids["dead_lettered"], ids["running"]]


async def test_pages_follow_each_other_without_gap_or_overlap_while_jobs_are_added(conn: Any) -> None:
    results = await enqueue_many(conn, [NewJob("work")] * 25)
    found: list[UUID] = []
    before = None

    while page := await store.list_jobs(conn, limit=10, before=before):
        found += [job.id for job in page]
        before = page[-1].id
        await enqueue(conn, "work")

    assert found == [result.id for result in reversed(results)]


async def test_counts_are_by_queue_and_state_with_the_age_of_the_oldest_that_is_ready(conn: Any) -> None:
    await populate(conn)
    await enqueue(conn, "work", delay="1h")
    await conn.execute("update ostinato.jobs set run_at = now() - interval '90 s' where queue = 'mail'")

    counts = {(count.namespace, count.queue, count.state): count for count in await store.count_jobs(conn)}

    assert {key: (count.jobs, count.ready) for key, count in counts.items()} == {
        ("default", "default", "running"): (1, 0),
        ("default", "default", "retrying"): (1, 0),
        ("default", "default", "pending"): (1, 0),
        ("default", "default", "dead_lettered"): (1, 0),
        ("elsewhere", "mail", "pending"): (1, 1),
    }
    oldest = counts["elsewhere", "mail", State.PENDING].oldest_ready
    assert oldest is not None
    assert timedelta(seconds=90) <= oldest < timedelta(seconds=120)
    assert len(await store.count_jobs(conn, namespace="elsewhere")) == 1
    assert await store.count_jobs(conn, queues=["nothing"]) == []


async def test_the_next_run_of_a_line_is_known(conn: Any) -> None:
    at = datetime(2040, 1, 1, tzinfo=UTC)
    await enqueue(conn, "work", run_at=at)
    await enqueue(conn, "work", run_at=at + timedelta(days=1), priority=1)

    assert await store.find_lanes(conn, "default", ["default", "empty"]) == [("default", 1), ("default", 0)]
    await enqueue(conn, "unserved", run_at=datetime(2020, 1, 1, tzinfo=UTC))
    lines = [[("default", 0), ("default", 1)], [("default", 1)], [("empty", 0)]]
    found = [await store.next_run_at(conn, "default", each) for each in lines]
    assert [run_at for run_at, _ in found] == [at, at + timedelta(days=1), None]
    assert all(abs(now - datetime.now(UTC)) < timedelta(minutes=1) for _, now in found)


async def test_what_a_handler_tells_is_kept_in_order_and_only_while_it_holds_the_job(conn: Any) -> None:
    actor = await hire(conn)
    await enqueue(conn, "work")
    job = await actor.claim_one()

    assert await store.emit(conn, job.held, attempt=1, event={"sent": 1})
    assert await store.emit(conn, job.held, attempt=1, event="half way")
    await store.complete(conn, [job])

    assert not await store.emit(conn, job.held, attempt=1, event="too late")
    assert [told.event for told in await store.list_events(conn, job.id)] == [{"sent": 1}, "half way"]


async def test_workers_are_listed_with_what_they_serve_and_run(conn: Any) -> None:
    actor = await hire(conn, "work", store.JobType(name="work", version=2), queues=["default", "mail"])
    await hire(conn, namespace="elsewhere")
    await enqueue(conn, "work")
    await actor.claim_one()
    await store.drain_workers(conn, [actor.id])

    (worker,) = await store.list_workers(conn, namespace="default")

    assert (worker.id, worker.queues, worker.job_types) == (actor.id, ["default", "mail"], ["work", "work@2"])
    assert worker.running == 1
    assert worker.draining_at is not None
    assert len(await store.list_workers(conn)) == 2
    await store.retire_workers(conn, [actor.id])
    assert await store.list_workers(conn, namespace="default") == []


async def test_a_worker_says_what_it_knows_of_its_types(conn: Any) -> None:
    known = store.JobType(
        name="work",
        queue="mail",
        max_attempts=7,
        timeout=timedelta(minutes=1),
        payload_schema={"type": "object"},
    )
    await hire(conn, known)
    before = await conn.fetchval("select updated_at from ostinato.job_types")
    await hire(conn, known)

    row = await conn.fetchrow("select * from ostinato.job_types")

    assert (row["queue"], row["max_attempts"], row["timeout"]) == ("mail", 7, timedelta(minutes=1))
    assert row["payload_schema"] == '{"type": "object"}'
    assert row["updated_at"] == before, "saying the same again writes nothing"

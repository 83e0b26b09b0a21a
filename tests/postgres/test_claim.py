"""Claiming: each job once, in order, only what the worker serves, within the limits."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from ostinato import NewJob, enqueue, enqueue_many, store
from tests.postgres.actors import HOUR, Actor, hire

Connect = Callable[[], Awaitable[Any]]
JobType, Limit = store.JobType, store.Limit


async def drained(actor: Actor, batch: int) -> list[store.Claimed]:
    found: list[store.Claimed] = []
    while jobs := await actor.claim(batch):
        found += jobs
    return found


async def test_8_concurrent_claimers_over_5000_jobs_take_each_job_once_and_in_order(connect: Connect) -> None:
    conns = [await connect() for _ in range(8)]
    actors = [await hire(conn) for conn in conns]
    results = await enqueue_many(conns[0], [NewJob("work", {"n": n}, priority=n % 3) for n in range(5000)])

    shares = await asyncio.gather(*(drained(actor, 50) for actor in actors))

    claimed = [job.id for share in shares for job in share]
    assert len(claimed) == 5000
    assert set(claimed) == {result.id for result in results}
    assert sum(1 for share in shares if share) > 1
    for share in shares:
        order = [(-job.priority, job.run_at, job.id) for job in share]
        assert order == sorted(order)


async def test_priority_comes_before_time_and_time_before_id(conn: Any) -> None:
    actor = await hire(conn, queues=["a", "b"])
    late = await enqueue(conn, "work", queue="a")
    early = await enqueue(conn, "work", queue="a")
    urgent = await enqueue(conn, "work", queue="b", priority=5)
    idle = await enqueue(conn, "work", queue="b", priority=-5)
    await conn.execute("update ostinato.jobs set run_at = now() - interval '1 h' where id = $1", early.id)

    claimed = [(await actor.claim(1))[0].id for _ in range(4)]

    assert claimed == [urgent.id, early.id, late.id, idle.id]


async def test_queues_of_one_priority_take_turns(conn: Any) -> None:
    actor = await hire(conn, queues=["a", "b"])
    await enqueue_many(conn, [NewJob("work", queue=queue) for queue in "ab" for _ in range(100)])

    claimed = Counter([job.queue for _ in range(10) for job in await actor.claim(5)])

    assert claimed == {"a": 25, "b": 25}


async def test_only_what_is_due_and_served_is_claimed(conn: Any) -> None:
    actor = await hire(conn, "work", JobType(name="letter", version=2))
    for other in (
        NewJob("work", delay="1h"),
        NewJob("work", queue="elsewhere"),
        NewJob("work", namespace="elsewhere"),
        NewJob("work", job_version=2),
        NewJob("letter"),
        NewJob("letter", job_version=3),
        NewJob("unknown"),
    ):
        await enqueue_many(conn, [other])
    served = await enqueue_many(conn, [NewJob("work"), NewJob("letter", job_version=2)])

    claimed = await actor.claim(100)

    assert {job.id for job in claimed} == {result.id for result in served}


async def test_a_claimed_job_is_running_and_counts_an_attempt(conn: Any) -> None:
    actor = await hire(conn)
    await enqueue(conn, "work", {"n": 1}, context={"c": 1}, timeout="5s", max_attempts=3)

    claimed = await actor.claim_one()

    job = await store.get_job(conn, claimed.id)
    assert (job.state, job.attempt, job.worker_id, job.lease) == ("running", 1, actor.id, claimed.lease)
    assert job.started_at is not None
    assert (claimed.payload, claimed.context, claimed.max_attempts) == ('{"n": 1}', '{"c": 1}', 3)
    assert (claimed.attempt, claimed.timeout) == (1, job.timeout)


async def test_every_claim_has_a_lease_of_its_own(conn: Any) -> None:
    actor = await hire(conn)
    await enqueue(conn, "work")

    leases = []
    for _ in range(3):
        claimed = await actor.claim_one()
        leases.append(claimed.lease)
        await store.release(conn, [claimed.held])

    assert len(set(leases)) == 3


async def test_a_claim_waits_for_the_disk_only_with_others_in_its_transaction(conn: Any) -> None:
    actor = await hire(conn)
    await enqueue_many(conn, [NewJob("work")] * 2)
    # Says at commit, when a deferred trigger runs, whether this commit will wait.
    await conn.execute(
        """
        create table said (waits text);
        create function say() returns trigger language plpgsql as
            'begin insert into said values (current_setting(''synchronous_commit'')); return null; end';
        create constraint trigger say after update on ostinato.jobs deferrable initially deferred
            for each row execute function say();
        """
    )

    await actor.claim(1)
    async with conn.transaction():
        await actor.claim(1)

    assert [row["waits"] for row in await conn.fetch("select waits from said")] == ["off", "on"]
    assert await conn.fetchval("show synchronous_commit") == "on"


async def test_a_worker_that_drains_or_has_ended_or_never_was_gets_nothing(conn: Any) -> None:
    draining, ended, stranger = await hire(conn), await hire(conn), await hire(conn)
    await enqueue_many(conn, [NewJob("work")] * 3)
    await store.drain_workers(conn, [draining.id])
    await store.retire_workers(conn, [ended.id])
    stranger.id = (await enqueue(conn, "work")).id

    claims = [await actor.claim(1) for actor in (draining, ended, stranger)]

    assert claims == [[], [], []]


async def test_what_lies_below_the_mark_is_found_when_the_mark_is_given_up(conn: Any) -> None:
    now = 0.0
    actor = await hire(conn)
    actor.lanes.clock = lambda: now
    await enqueue_many(conn, [NewJob("work")] * 3)
    await actor.claim(2)
    late = await enqueue(conn, "work")
    await conn.execute("update ostinato.jobs set run_at = run_at - interval '1 h' where id = $1", late.id)

    above = await actor.claim(10)
    nothing = await actor.claim(10)
    now += 60
    below = await actor.claim(10)

    assert len(above) == 1
    assert nothing == []
    assert [job.id for job in below] == [late.id]


async def test_a_notification_gives_up_the_mark_of_its_lane_and_opens_new_ones(conn: Any) -> None:
    actor = await hire(conn)
    actor.lanes.clock = lambda: 0.0
    await enqueue(conn, "work")
    await actor.claim(1)
    urgent = await enqueue(conn, "work", priority=3)

    before = await actor.claim(1)
    actor.lanes.notified("default", 3)
    after = await actor.claim(1)

    assert before == []
    assert [job.id for job in after] == [urgent.id]


async def test_no_more_of_a_type_run_than_it_has_slots_however_many_claim(connect: Connect) -> None:
    limited = JobType(name="work", limit=Limit(max_running=3))
    conns = [await connect() for _ in range(6)]
    actors = [await hire(conn, limited, "free") for conn in conns]
    await enqueue_many(conns[0], [NewJob("work")] * 50 + [NewJob("free")] * 10)
    most, finished = 0, 0

    async def work(actor: Actor) -> None:
        nonlocal most, finished
        while finished < 50:
            actor.look_again()
            jobs = await actor.claim(4)
            running = await actor.conn.fetchval(
                "select count(*) from ostinato.jobs where job_type = 'work' and state = 'running'"
            )
            most = max(most, running)
            await store.complete(actor.conn, jobs)
            finished += sum(1 for job in jobs if job.job_type == "work")

    async with asyncio.timeout(60):
        await asyncio.gather(*(work(actor) for actor in actors))

    assert most == 3
    assert await conns[0].fetchval("select count(*) from ostinato.job_history") == 60
    assert await conns[0].fetchval("select count(*) from ostinato.slots where job_id is not null") == 0


@pytest.mark.parametrize(
    "leave", ["complete", "retry", "snooze", "release", "dead_letter", "stop", "recover", "delete"]
)
async def test_however_a_job_stops_running_its_slot_is_free_again(conn: Any, leave: str) -> None:
    actor = await hire(conn, JobType(name="work", limit=Limit(max_running=1)))
    await enqueue_many(conn, [NewJob("work")] * 2)
    (job,) = await actor.claim(2)
    assert await conn.fetchval("select job_id from ostinato.slots") == job.id

    if leave == "complete":
        await store.complete(conn, [job])
    elif leave == "retry":
        await store.retry(conn, job.held, delay=timedelta(0), code="X", message="")
    elif leave == "snooze":
        await store.snooze(conn, job.held)
    elif leave == "release":
        await store.release(conn, [job])
    elif leave == "dead_letter":
        await store.dead_letter(conn, job.held, code="X", message="")
    elif leave == "stop":
        await store.cancel(conn, job.id)
        await store.stop(conn, job.held)
    elif leave == "recover":
        await store.retire_workers(conn, [actor.id])
        await store.recover(conn, max_attempts=5, poison=3)
        actor = await hire(conn, JobType(name="work", limit=Limit(max_running=1)))
    else:
        await conn.execute("delete from ostinato.jobs where id = $1", job.id)

    assert await conn.fetchval("select job_id from ostinato.slots") is None
    actor.look_again()
    assert len(await actor.claim(2)) == 1


async def test_a_lowered_limit_holds_as_soon_as_a_worker_says_it(conn: Any) -> None:
    await hire(conn, JobType(name="work", limit=Limit(max_running=3)))
    lowered = await hire(conn, JobType(name="work", limit=Limit(max_running=1)))
    await enqueue_many(conn, [NewJob("work")] * 5)

    assert len(await lowered.claim(5)) == 1


async def test_a_limit_holds_over_all_queues_and_priorities_of_the_type_together(conn: Any) -> None:
    slotted, rated = (
        JobType(name="work", limit=Limit(max_running=3)),
        JobType(name="mail", limit=Limit(rate=1.0, burst=2)),
    )
    actor = await hire(conn, slotted, rated, queues=["a", "b"])
    lines = [(queue, priority) for queue in "ab" for priority in (0, 1)]
    jobs = [NewJob(name, queue=queue, priority=line) for name in ("work", "mail") for queue, line in lines * 3]
    await enqueue_many(conn, jobs)

    claimed = Counter(job.job_type for job in await actor.claim(20))

    assert claimed == {"work": 3, "mail": 2}


async def test_a_worker_hears_of_limits_that_others_say_and_they_end_with_the_last_who_says_so(conn: Any) -> None:
    knowing = await hire(conn, JobType(name="work", limit=Limit(max_running=1)))
    ignorant = await hire(conn, JobType(name="work", version=2), "mail")

    renewal = await store.renew_worker(conn, ignorant.id, lease=HOUR)
    assert renewal is not None
    assert renewal.limited == ["work"]
    assert await store.prune_limits(conn) == 0

    await store.retire_workers(conn, [knowing.id])
    assert await store.prune_limits(conn) == 1
    renewal = await store.renew_worker(conn, ignorant.id, lease=HOUR)
    assert renewal is not None
    assert renewal.limited == []


async def test_claims_of_a_limited_type_leave_slots_for_each_other(connect: Connect) -> None:
    conn, other = await connect(), await connect()
    limited = JobType(name="work", limit=Limit(max_running=10))
    one, two = await hire(conn, limited), await hire(other, limited)
    await enqueue_many(conn, [NewJob("work")] * 10)

    async with conn.transaction():
        first = await one.claim(2)
        second = await two.claim(2)

    assert (len(first), len(second)) == (2, 2)


async def test_a_wall_of_a_limited_type_does_not_hold_up_the_others(conn: Any) -> None:
    actor = await hire(conn, JobType(name="wall", limit=Limit(max_running=1)), "free")
    await enqueue_many(conn, [NewJob("wall")] * 300 + [NewJob("free")] * 5)

    claimed = Counter(job.job_type for job in await actor.claim(6))

    assert claimed == {"wall": 1, "free": 5}


async def test_a_rate_is_a_bucket_that_fills_with_the_databases_time(conn: Any) -> None:
    actor = await hire(conn, JobType(name="work", limit=Limit(rate=2.0, burst=3)))
    await enqueue_many(conn, [NewJob("work")] * 20)

    burst = await actor.claim(10)
    empty = await actor.claim(10)
    await conn.execute("update ostinato.limits set refilled_at = refilled_at - interval '1 s'")
    second = await actor.claim(10)
    await conn.execute("update ostinato.limits set refilled_at = refilled_at - interval '1 day'")
    after_a_day = await actor.claim(10)

    assert [len(burst), len(empty), len(second), len(after_a_day)] == [3, 0, 2, 3]


async def test_a_rate_is_not_exceeded_by_concurrent_claimers(connect: Connect) -> None:
    conns = [await connect() for _ in range(6)]
    actors = [await hire(conn, JobType(name="work", limit=Limit(rate=0.001, burst=10))) for conn in conns]
    await enqueue_many(conns[0], [NewJob("work")] * 60)

    claims = [await asyncio.gather(*(actor.claim(4) for actor in actors)) for _ in range(4)]

    assert sum(len(jobs) for round_ in claims for jobs in round_) == 10


async def test_of_a_concurrency_key_one_runs_at_a_time_in_order(connect: Connect) -> None:
    conns = [await connect() for _ in range(6)]
    actors = [await hire(conn, "work", "other") for conn in conns]
    jobs = [NewJob(("work", "other")[n % 2], {"n": n}, concurrency_key=f"k{n % 3}") for n in range(60)]
    results = await enqueue_many(conns[0], jobs)
    running: Counter[str] = Counter()
    order: dict[str, list[Any]] = {"k0": [], "k1": [], "k2": []}
    keys = {result.id: str(job.concurrency_key) for job, result in zip(jobs, results, strict=True)}
    most = finished = 0

    async def work(actor: Actor) -> None:
        nonlocal most, finished
        while finished < 60:
            actor.look_again()
            for job in await actor.claim(5):
                running[keys[job.id]] += 1
                most = max(most, *running.values())
                order[keys[job.id]].append(job.id)
                await asyncio.sleep(0)
                running[keys[job.id]] -= 1
                await store.complete(actor.conn, [job])
                finished += 1

    async with asyncio.timeout(60):
        await asyncio.gather(*(work(actor) for actor in actors))

    assert most == 1
    assert all(ids == sorted(ids) for ids in order.values())


async def test_the_database_refuses_a_second_running_job_of_a_concurrency_key(conn: Any) -> None:
    actor = await hire(conn)
    await enqueue_many(conn, [NewJob("work", concurrency_key="k")] * 2)
    await actor.claim(2)

    with pytest.raises(Exception, match="jobs_key"):
        await conn.execute(
            """
            update ostinato.jobs set state = 'running', lease = 1, worker_id = $1, started_at = now()
            where state = 'pending'
            """,
            actor.id,
        )


async def test_a_limit_that_was_lowered_counts_slots_above_it_that_are_still_held(conn: Any) -> None:
    before = await hire(conn, JobType(name="work", limit=Limit(max_running=4)))
    await enqueue_many(conn, [NewJob("work")] * 8)
    held = await before.claim(4)
    slots = {row["job_id"]: row["slot"] for row in await conn.fetch("select job_id, slot from ostinato.slots")}
    await store.complete(conn, [job for job in held if slots[job.id] <= 2])

    lowered = await hire(conn, JobType(name="work", limit=Limit(max_running=2)))

    assert await lowered.claim(4) == []

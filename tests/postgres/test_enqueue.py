"""The way in: in the caller's transaction, with keys, under concurrency."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

import pydantic
import pytest

from ostinato import Enqueued, InvalidArgument, NewJob, enqueue, enqueue_many, store
from tests.postgres.actors import HOUR, Actor, everything, hire, until_blocked

Connect = Callable[[], Awaitable[Any]]


class Email(pydantic.BaseModel):
    to: str
    at: datetime | None = None


@dataclass
class Sum:
    a: int
    b: int


async def test_a_job_exists_when_its_transaction_commits(conn: Any, connect: Connect) -> None:
    other = await connect()

    async with conn.transaction():
        result = await enqueue(conn, "work", {"n": 1})
        assert await other.fetchval("select count(*) from ostinato.jobs") == 0

    job = await store.get_job(other, result.id)
    assert (job.state, job.payload, job.queue, job.namespace, job.priority) == (
        "pending",
        {"n": 1},
        "default",
        "default",
        0,
    )


async def test_a_rolled_back_transaction_leaves_no_job_no_notification_and_no_key(conn: Any, connect: Connect) -> None:
    idle, heard = await connect(), asyncio.Queue[str]()
    actor = await hire(idle)
    await idle.add_listener("ostinato_jobs", lambda *said: heard.put_nowait(str(said[-1])))
    await store.mark_idle(conn, actor.id, idle=True)

    with pytest.raises(ZeroDivisionError):
        async with conn.transaction():
            await enqueue(conn, "work", {"lost": True}, idempotency_key="k", dedup_key="d")
            await enqueue_many(conn, [NewJob("work"), NewJob("work")])
            1 / 0

    assert await everything(conn) == []
    assert await conn.fetchval("select count(*) from ostinato.idempotency_keys") == 0
    # The next commit's notification is the first that is heard.
    await enqueue(conn, "work", priority=7, idempotency_key="k", dedup_key="d")
    assert await asyncio.wait_for(heard.get(), 10) == "default/default/7"


async def test_a_notification_is_sent_once_per_transaction_and_only_for_work_that_is_ready_and_waited_for(
    conn: Any, connect: Connect
) -> None:
    idle, heard = await connect(), asyncio.Queue[str]()
    actor = await hire(idle, queues=["mail", "other"])
    await idle.add_listener("ostinato_jobs", lambda *said: heard.put_nowait(str(said[-1])))

    await enqueue(conn, "work", queue="mail")  # nobody is idle yet
    await store.mark_idle(conn, actor.id, idle=True)
    await enqueue(conn, "work", queue="mail", delay="1h")
    await enqueue(conn, "work", queue="unserved")
    await enqueue(conn, "work", namespace="elsewhere", queue="mail")
    async with conn.transaction():
        await enqueue(conn, "work", queue="mail")
        await enqueue(conn, "work", queue="mail", dedup_key="k")
        await enqueue_many(conn, [NewJob("work", queue="mail")] * 3)
    await enqueue(conn, "work", queue="other", priority=3)

    assert await asyncio.wait_for(heard.get(), 10) == "default/mail/0"
    assert await asyncio.wait_for(heard.get(), 10) == "default/other/3"
    assert heard.empty()


async def test_whoever_enqueues_looks_for_idle_workers_until_the_last_lease_of_one_ends(conn: Any) -> None:
    long, short = await hire(conn, lease=HOUR), await hire(conn, lease=timedelta(seconds=1))
    before = await conn.fetchval("select ostinato.anyone_idle()")

    await store.mark_idle(conn, long.id, idle=True)
    await store.mark_idle(conn, short.id, idle=True)
    marked = await conn.fetchval("select last_value from ostinato.idle_until")
    await store.renew_worker(conn, short.id, lease=2 * HOUR)
    renewed = await conn.fetchval("select last_value from ostinato.idle_until")

    assert before is None
    assert marked == ceil(await lease_end(conn, long))
    assert renewed == ceil(await lease_end(conn, short))
    assert await conn.fetchval("select ostinato.anyone_idle()")


async def lease_end(conn: Any, actor: Actor) -> float:
    end: datetime = await conn.fetchval("select lease_expires_at from ostinato.workers where id = $1", actor.id)
    return end.timestamp()


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("keyed", [False, True])
async def test_every_option_is_kept_by_each_of_the_ways_in(conn: Any, bulk: bool, keyed: bool) -> None:
    run_at = datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    options: dict[str, Any] = {
        "namespace": "payments",
        "queue": "mail",
        "priority": -3,
        "run_at": run_at,
        "max_attempts": 7,
        "timeout": "1h30m",
        "context": {"tenant": "acme"},
        "job_version": 2,
        "concurrency_key": "acme",
    }
    if keyed:
        options["dedup_key"] = "d"

    if bulk:
        (result,) = await enqueue_many(conn, [NewJob("work", {"ä": "ö"}, **options)])
    else:
        result = await enqueue(conn, "work", {"ä": "ö"}, **options)

    job = await store.get_job(conn, result.id)
    assert result.created
    assert {name: getattr(job, name) for name in options} == options | {"timeout": timedelta(minutes=90)}
    assert (job.job_type, job.payload, job.attempt) == ("work", {"ä": "ö"}, 0)


@pytest.mark.parametrize(
    ("payload", "stored"),
    [
        (None, {}),
        (Email(to="a@example.com"), {"to": "a@example.com", "at": None}),
        (Sum(1, 2), {"a": 1, "b": 2}),
        ({"when": datetime(2026, 1, 1, tzinfo=UTC), "big": 10**30}, {"when": "2026-01-01T00:00:00Z", "big": 10**30}),
        ({"text": '\\ " \u2028 \U0001f3b5 \\u0000'}, {"text": '\\ " \u2028 \U0001f3b5 \\u0000'}),
    ],
)
async def test_a_payload_may_be_a_dict_a_model_or_a_dataclass(conn: Any, payload: Any, stored: Any) -> None:
    result = await enqueue(conn, "work", payload)

    assert (await store.get_job(conn, result.id)).payload == stored


async def test_a_bad_argument_writes_nothing(conn: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"jobs\[1\].priority is 99999"):
        await enqueue_many(conn, [NewJob("work"), NewJob("work", priority=99999)])
    with pytest.raises(InvalidArgument, match=r"jobs\[2\].payload is .* NUL"):
        await enqueue_many(conn, [NewJob("work"), NewJob("work"), NewJob("work", {"a": "\0"})])

    assert await everything(conn) == []


async def test_bulk_keeps_the_order_and_answers_in_it(conn: Any) -> None:
    jobs = [NewJob("work", {"n": n}, queue=f"q{n % 3}") for n in range(200)]

    results = await enqueue_many(conn, jobs)

    assert [(await store.get_job(conn, result.id)).payload["n"] for result in results] == list(range(200))
    assert [result.id for result in results] == sorted(result.id for result in results)
    assert await enqueue_many(conn, []) == []


async def test_bulk_with_keys_answers_in_order_too(conn: Any) -> None:
    jobs = [NewJob("work", {"n": n}, dedup_key=str(n % 3)) for n in range(6)]

    results = await enqueue_many(conn, jobs)

    assert [result.created for result in results] == [True] * 3 + [False] * 3
    assert [result.id for result in results[:3]] == [result.id for result in results[3:]]


async def test_two_concurrent_enqueues_with_one_idempotency_key_make_one_job(connect: Connect) -> None:
    conns = [await connect() for _ in range(8)]

    results = await asyncio.gather(*(enqueue(conn, "work", {"n": 1}, idempotency_key="k") for conn in conns))

    assert len({result.id for result in results}) == 1
    assert sum(result.created for result in results) == 1


async def test_the_second_of_two_waits_for_the_first_and_takes_over_if_that_rolls_back(connect: Connect) -> None:
    first, second = await connect(), await connect()
    transaction = first.transaction()
    await transaction.start()
    lost = await enqueue(first, "work", idempotency_key="k")

    waiting = asyncio.ensure_future(enqueue(second, "work", idempotency_key="k"))
    await until_blocked(first, second)
    await transaction.rollback()

    result = await waiting
    assert result.created
    assert result.id != lost.id


async def test_an_idempotency_key_outlives_its_job_until_it_expires(conn: Any) -> None:
    actor = await hire(conn)
    first = await enqueue(conn, "work", idempotency_key="k", idempotency_ttl="1h")
    await store.complete(conn, [await actor.claim_one()])

    again = await enqueue(conn, "work", idempotency_key="k")
    await conn.execute("update ostinato.idempotency_keys set expires_at = now() - interval '1 s'")
    fresh = await enqueue(conn, "work", idempotency_key="k")

    assert again == Enqueued(first.id, False)
    assert fresh.created
    assert fresh.id != first.id
    assert await conn.fetchval("select job_id from ostinato.idempotency_keys") == fresh.id


async def test_an_idempotency_key_remembers_the_job_that_a_dedup_key_gave(conn: Any) -> None:
    live = await enqueue(conn, "work", dedup_key="d")

    skipped = await enqueue(conn, "work", dedup_key="d", idempotency_key="k")
    again = await enqueue(conn, "work", dedup_key="other", idempotency_key="k")

    assert skipped == again == Enqueued(live.id, False)


async def test_keys_of_other_types_and_namespaces_do_not_meet(conn: Any) -> None:
    keys: dict[str, Any] = {"dedup_key": "k", "idempotency_key": "k"}

    results = [
        await enqueue(conn, "work", **keys),
        await enqueue(conn, "other", **keys),
        await enqueue(conn, "work", namespace="elsewhere", **keys),
    ]

    assert [result.created for result in results] == [True] * 3


async def test_skip_under_20_concurrent_callers_keeps_one(connect: Connect) -> None:
    conns = [await connect() for _ in range(20)]

    results = await asyncio.gather(*(enqueue(conn, "work", {"n": n}, dedup_key="k") for n, conn in enumerate(conns)))

    assert len({result.id for result in results}) == 1
    assert sum(result.created for result in results) == 1
    assert await conns[0].fetchval("select count(*) from ostinato.jobs") == 1


async def test_skip_also_skips_for_a_running_job_but_not_for_a_finished_one(conn: Any) -> None:
    actor = await hire(conn)
    first = await enqueue(conn, "work", dedup_key="k")
    claimed = await actor.claim_one()

    while_running = await enqueue(conn, "work", dedup_key="k")
    await store.complete(conn, [claimed])
    after = await enqueue(conn, "work", dedup_key="k")

    assert while_running == Enqueued(first.id, False)
    assert after.created


async def test_enqueue_under_20_concurrent_callers_stacks_them_all(connect: Connect) -> None:
    conns = [await connect() for _ in range(20)]

    results = await asyncio.gather(*(enqueue(conn, "work", dedup_key="k", dedup="enqueue") for conn in conns))

    assert len({result.id for result in results}) == 20
    assert all(result.created for result in results)


async def test_replace_under_20_concurrent_callers_leaves_one_that_waits_with_the_last_payload(
    connect: Connect,
) -> None:
    conns = [await connect() for _ in range(20)]

    results = await asyncio.gather(
        *(enqueue(conn, "work", {"n": n}, dedup_key="k", dedup="replace") for n, conn in enumerate(conns))
    )
    last = await enqueue(conns[0], "work", {"n": "last"}, priority=9, dedup_key="k", dedup="replace")

    assert sum(result.created for result in results) == 1
    assert {result.id for result in results} == {last.id}
    job = await store.get_job(conns[0], last.id)
    assert (job.payload, job.priority) == ({"n": "last"}, 9)


async def test_replace_never_touches_a_running_job(connect: Connect) -> None:
    conns = [await connect() for _ in range(20)]
    actor = await hire(conns[0])
    running = await enqueue(conns[0], "work", {"n": "running"}, dedup_key="k")
    claimed = await actor.claim_one()
    before = await conns[0].fetchval("select jobs::text from ostinato.jobs where id = $1", running.id)

    results = await asyncio.gather(
        *(enqueue(conn, "work", {"n": n}, dedup_key="k", dedup="replace") for n, conn in enumerate(conns))
    )

    assert await conns[0].fetchval("select jobs::text from ostinato.jobs where id = $1", running.id) == before
    assert sum(result.created for result in results) == 1
    (waiting,) = {result.id for result in results}
    assert waiting != running.id
    assert await store.complete(conns[0], [claimed]) == set()
    assert (await actor.claim_one()).id == waiting


async def test_replace_that_meets_a_claim_leaves_the_claimed_job_alone(connect: Connect) -> None:
    first, second = await connect(), await connect()
    actor = await hire(first)
    job = await enqueue(first, "work", {"n": 1}, dedup_key="k")
    transaction = first.transaction()
    await transaction.start()
    await actor.claim_one()

    replacing = asyncio.ensure_future(enqueue(second, "work", {"n": 2}, dedup_key="k", dedup="replace"))
    await until_blocked(first, second)
    await transaction.commit()

    result = await replacing
    assert result.created
    assert result.id != job.id
    assert (await store.get_job(first, job.id)).payload == {"n": 1}


@pytest.mark.parametrize("dedup", ["skip", "replace"])
async def test_a_job_that_is_not_committed_yet_counts_as_waiting_too(connect: Connect, dedup: Any) -> None:
    first, second = await connect(), await connect()
    actor = await hire(first)
    await enqueue(first, "work", dedup_key="k")
    running = await actor.claim_one()
    transaction = second.transaction()
    await transaction.start()
    waiting = await enqueue(second, "work", dedup_key="k", dedup="replace")
    await store.complete(first, [running])

    late = asyncio.ensure_future(enqueue(first, "work", {"n": 2}, dedup_key="k", dedup=dedup))
    await until_blocked(second, first)
    await transaction.commit()

    assert await late == Enqueued(waiting.id, False)
    assert await first.fetchval("select count(*) from ostinato.jobs") == 1


async def test_a_job_that_comes_back_to_waiting_may_find_another_of_its_key_there(conn: Any) -> None:
    actor = await hire(conn)
    await enqueue(conn, "work", dedup_key="k")
    running = await actor.claim_one()
    await enqueue(conn, "work", dedup_key="k", dedup="replace")

    outcome = await store.retry(conn, running.held, delay=timedelta(0), code="X", message="boom")

    assert outcome == "moved"
    assert await conn.fetchval("select count(*) from ostinato.jobs where state <> 'running'") == 2


@pytest.mark.parametrize("key", ["dedup_key", "idempotency_key"])
async def test_bulks_with_the_same_keys_in_other_orders_do_not_deadlock(connect: Connect, key: str) -> None:
    conns = [await connect() for _ in range(2)]
    jobs = [NewJob("work", **{key: str(n)}) for n in range(300)]  # type: ignore[arg-type]

    results = await asyncio.gather(enqueue_many(conns[0], jobs), enqueue_many(conns[1], jobs[::-1]))

    assert [result.id for result in results[0]] == [result.id for result in results[1]][::-1]
    assert await conns[0].fetchval("select count(*) from ostinato.jobs") == 300

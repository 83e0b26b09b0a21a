"""Every other move: what it does, and that a lost lease does nothing and says so."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from ostinato import NotFound, NotPossible, enqueue, store
from ostinato.store import Cancellation, Held, Outcome
from tests.postgres.actors import Actor, attempt_move, everything, hire, room_of, until_blocked

Connect = Callable[[], Awaitable[Any]]
SECOND = timedelta(seconds=1)


@pytest.fixture
async def actor(conn: Any) -> Actor:
    return await hire(conn)


async def claimed(actor: Actor, **options: Any) -> store.Claimed:
    await enqueue(actor.conn, "work", {"n": 1}, **options)
    return await actor.claim_one()


async def test_complete_moves_to_history_with_its_output(actor: Actor) -> None:
    jobs = [await claimed(actor) for _ in range(3)]

    lost = await store.complete(actor.conn, jobs, [{"rows": 3}, [1, "zwei"]])

    assert lost == set()
    found = [await store.get_job(actor.conn, job.id) for job in jobs]
    assert [job.state for job in found] == ["completed"] * 3
    assert [job.output for job in found] == [{"rows": 3}, [1, "zwei"], None]
    assert {await room_of(actor.conn, job.id) for job in jobs} == {"job_history"}
    assert all(job.finished_at and job.started_at and job.finished_at >= job.started_at for job in found)
    assert [job.attempts for job in found] == [[], [], []]


async def test_complete_one_does_the_same_for_one(actor: Actor) -> None:
    one, other = await claimed(actor), await claimed(actor)

    assert await store.complete_one(actor.conn, one, {"sent": 1})
    await store.complete(actor.conn, [other], [{"sent": 1}])

    jobs = [await store.get_job(actor.conn, job.id) for job in (one, other)]
    assert [(job.state, job.output, job.attempt) for job in jobs] == [("completed", {"sent": 1}, 1)] * 2


async def test_completing_some_that_were_lost_names_just_those(actor: Actor) -> None:
    kept, lost = await claimed(actor), await claimed(actor)
    await store.release(actor.conn, [lost])

    assert await store.complete(actor.conn, [kept, lost]) == {lost.id}
    assert (await store.get_job(actor.conn, kept.id)).state == "completed"
    assert (await store.get_job(actor.conn, lost.id)).state == "pending"


async def test_leases_are_paired_with_their_jobs(actor: Actor) -> None:
    one, two = await claimed(actor), await claimed(actor)
    swapped = [Held(one.id, two.lease), Held(two.id, one.lease)]
    before = await everything(actor.conn)

    assert await store.complete(actor.conn, swapped) == {one.id, two.id}
    assert await store.release(actor.conn, swapped) == set()
    assert await everything(actor.conn) == before


async def test_retry_waits_and_remembers_the_failed_attempt(actor: Actor) -> None:
    job = await claimed(actor)

    outcome = await store.retry(actor.conn, job.held, delay=timedelta(minutes=5), code="UPSTREAM_5XX", message="503")

    found = await store.get_job(actor.conn, job.id)
    assert outcome is Outcome.MOVED
    assert (found.state, found.attempt, found.error_code, found.error_message) == ("retrying", 1, "UPSTREAM_5XX", "503")
    assert found.run_at - found.attempts[0].finished == timedelta(minutes=5)
    (attempt,) = found.attempts
    assert (attempt.attempt, attempt.worker, attempt.code, attempt.message) == (1, actor.id, "UPSTREAM_5XX", "503")
    assert (found.worker_id, found.lease) == (None, None)


async def test_success_after_a_failure_forgets_the_error_but_not_the_attempt(actor: Actor) -> None:
    job = await claimed(actor)
    await store.retry(actor.conn, job.held, delay=timedelta(0), code="X", message="boom")

    again = await actor.claim_one()
    await store.complete(actor.conn, [again])

    found = await store.get_job(actor.conn, job.id)
    assert (found.state, found.attempt, found.error_code, found.error_message) == ("completed", 2, None, None)
    assert [attempt.code for attempt in found.attempts] == ["X"]


async def test_only_the_last_50_failed_attempts_are_kept(actor: Actor) -> None:
    await enqueue(actor.conn, "work", max_attempts=100)
    for n in range(55):
        job = await actor.claim_one()
        await store.retry(actor.conn, job.held, delay=timedelta(0), code="X", message=str(n))

    found = await store.get_job(actor.conn, job.id)
    assert [attempt.message for attempt in found.attempts] == [str(n) for n in range(5, 55)]
    assert found.attempt == 55


@pytest.mark.parametrize("absolute", [False, True])
async def test_snooze_runs_it_later_and_spends_no_attempt(actor: Actor, absolute: bool) -> None:
    job = await claimed(actor)
    until = datetime(2040, 1, 1, tzinfo=UTC)

    if absolute:
        outcome = await store.snooze(actor.conn, job.held, until=until)
    else:
        outcome = await store.snooze(actor.conn, job.held, delay=timedelta(hours=1))

    found = await store.get_job(actor.conn, job.id)
    assert (outcome, found.state, found.attempt, found.attempts) == (Outcome.MOVED, "pending", 0, [])
    assert found.run_at == until if absolute else found.run_at > datetime.now(UTC) + timedelta(minutes=59)


async def test_release_gives_it_back_at_once_and_spends_no_attempt(actor: Actor) -> None:
    job = await claimed(actor)

    assert await store.release(actor.conn, [job]) == {job.id}

    again = await actor.claim_one()
    assert (again.id, again.attempt, again.run_at) == (job.id, 1, job.run_at)


async def test_dead_letter_keeps_why(actor: Actor) -> None:
    job = await claimed(actor)

    outcome = await store.dead_letter(actor.conn, job.held, code="NOT_FOUND", message="no such user")

    found = await store.get_job(actor.conn, job.id)
    assert outcome is Outcome.MOVED
    assert (found.state, found.error_code, found.error_message) == ("dead_lettered", "NOT_FOUND", "no such user")
    assert [attempt.code for attempt in found.attempts] == ["NOT_FOUND"]
    assert await room_of(actor.conn, job.id) == "dead_letters"


async def test_progress_is_seen_while_it_runs(actor: Actor) -> None:
    job = await claimed(actor)

    assert await store.progress(actor.conn, job.held, {"done": 3, "of": 10})

    assert (await store.get_job(actor.conn, job.id)).progress == {"done": 3, "of": 10}


async def test_cancel_ends_a_waiting_job_at_once(actor: Actor) -> None:
    pending = await enqueue(actor.conn, "work", delay="1h")
    retrying = await claimed(actor)
    await store.retry(actor.conn, retrying.held, delay=SECOND, code="X", message="boom")

    outcomes = [await store.cancel(actor.conn, job_id, reason="not needed") for job_id in (pending.id, retrying.id)]

    assert outcomes == [Cancellation.CANCELLED] * 2
    for job_id in (pending.id, retrying.id):
        job = await store.get_job(actor.conn, job_id)
        assert (job.state, job.error_code, job.error_message) == ("cancelled", "CANCELLED", "not needed")
        assert await room_of(actor.conn, job_id) == "job_history"


async def test_cancel_asks_the_worker_of_a_running_job_which_hears_of_it_at_once(
    actor: Actor, connect: Connect
) -> None:
    listener, heard = await connect(), asyncio.Queue[str]()
    await listener.add_listener("ostinato_cancel", lambda *said: heard.put_nowait(str(said[-1])))
    job = await claimed(actor)

    outcome = await store.cancel(actor.conn, job.id)

    assert outcome is Cancellation.ASKED
    assert await asyncio.wait_for(heard.get(), 10) == f"{actor.id}/{job.id}"
    assert (await store.get_job(actor.conn, job.id)).state == "running"
    renewal = await store.renew_worker(actor.conn, actor.id, lease=SECOND)
    assert renewal is not None
    assert renewal.cancelled == [job.id]


async def test_cancel_of_a_finished_job_says_so_and_of_an_unknown_one_is_an_error(actor: Actor) -> None:
    done, dead = await claimed(actor), await claimed(actor)
    await store.complete(actor.conn, [done])
    await store.dead_letter(actor.conn, dead.held, code="X", message="")

    assert await store.cancel(actor.conn, done.id) is Cancellation.FINISHED
    assert await store.cancel(actor.conn, dead.id) is Cancellation.FINISHED
    with pytest.raises(NotFound, match="there is no job"):
        await store.cancel(actor.conn, UUID(int=0))


@pytest.mark.parametrize("move", ["retry", "snooze", "release", "dead_letter", "stop"])
async def test_whatever_a_worker_does_with_a_job_that_was_called_off_it_ends_as_cancelled(
    actor: Actor, move: str
) -> None:
    job = await claimed(actor)
    await store.cancel(actor.conn, job.id)

    outcome = await attempt_move(actor.conn, move, job.held)

    assert outcome is Outcome.CANCELLED
    assert (await store.get_job(actor.conn, job.id)).state == "cancelled"
    assert await room_of(actor.conn, job.id) == "job_history"


async def test_a_job_that_returns_before_it_hears_of_the_cancellation_is_completed(actor: Actor) -> None:
    job = await claimed(actor)
    await store.cancel(actor.conn, job.id)

    assert await store.complete(actor.conn, [job]) == set()
    assert (await store.get_job(actor.conn, job.id)).state == "completed"


async def test_nobody_stops_a_job_that_was_not_called_off(actor: Actor) -> None:
    job = await claimed(actor)

    assert await store.stop(actor.conn, job.held) is Outcome.LOST
    assert (await store.get_job(actor.conn, job.id)).state == "running"


async def test_cancel_that_meets_a_claim_asks_instead(connect: Connect) -> None:
    first, second = await connect(), await connect()
    actor = await hire(first)
    job = await enqueue(first, "work")
    transaction = first.transaction()
    await transaction.start()
    await actor.claim_one()

    cancelling = asyncio.create_task(store.cancel(second, job.id))
    await until_blocked(first, second)
    await transaction.commit()

    assert await cancelling is Cancellation.ASKED
    assert (await store.get_job(first, job.id)).cancel_requested_at is not None


@pytest.mark.parametrize(
    "move", ["complete", "complete_one", "retry", "snooze", "release", "dead_letter", "stop", "progress"]
)
@pytest.mark.parametrize("thief", ["recover", "release", "nobody"])
async def test_a_write_by_a_lease_that_was_lost_changes_nothing_and_says_so(
    actor: Actor, move: str, thief: str
) -> None:
    job = await claimed(actor)
    held = job.held
    if thief == "recover":
        await store.retire_workers(actor.conn, [actor.id])
        await store.recover(actor.conn, max_attempts=5, poison=3)
        other = await hire(actor.conn)
        assert (await other.claim_one()).id == job.id
    elif thief == "release":
        await store.release(actor.conn, [job])
        assert (await actor.claim_one()).attempt == job.attempt, "the attempt is no fence"
    else:
        held = Held(job.id, job.lease + 1)
    before = await everything(actor.conn)

    outcome = await attempt_move(actor.conn, move, held)

    assert outcome is Outcome.LOST
    assert await everything(actor.conn) == before


async def test_hasten_runs_a_waiting_job_now(actor: Actor) -> None:
    later = await enqueue(actor.conn, "work", delay="1h")
    failed = await claimed(actor)
    await store.retry(actor.conn, failed.held, delay=timedelta(hours=1), code="X", message="boom")

    await store.hasten(actor.conn, later.id)
    await store.hasten(actor.conn, failed.id)

    actor.look_again()
    assert {job.id for job in await actor.claim(5)} == {later.id, failed.id}
    with pytest.raises(NotPossible, match="is running; only a waiting job"):
        await store.hasten(actor.conn, later.id)
    with pytest.raises(NotFound):
        await store.hasten(actor.conn, UUID(int=0))


async def test_finishing_a_job_does_not_depend_on_partitions_made_ahead(actor: Actor) -> None:
    job = await claimed(actor)
    parts = await actor.conn.fetch("select inhrelid::regclass::text as name from pg_inherits")
    for part in parts:
        if part["name"].startswith("ostinato.job_history"):
            await actor.conn.execute(f"drop table if exists {part['name']}")

    assert await store.complete(actor.conn, [job]) == set()
    assert (await store.get_job(actor.conn, job.id)).state == "completed"


async def test_completion_and_business_work_commit_together_or_not_at_all(actor: Actor) -> None:
    await actor.conn.execute("create table payments (n int)")
    job = await claimed(actor)

    with pytest.raises(asyncpg.PostgresError):
        async with actor.conn.transaction():
            await actor.conn.execute("insert into payments values (1)")
            assert await store.complete_one(actor.conn, job)
            await actor.conn.execute("select 1 / 0")

    assert await actor.conn.fetchval("select count(*) from payments") == 0
    assert (await store.get_job(actor.conn, job.id)).state == "running"


@pytest.mark.parametrize("said", ["a\0b", "half \ud800", "x" * 10_000])
async def test_whatever_a_handler_says_its_failure_is_recorded(actor: Actor, said: str) -> None:
    one, two = await claimed(actor), await claimed(actor)

    await store.retry(actor.conn, one.held, delay=SECOND, code="X", message=said)
    await store.dead_letter(actor.conn, two.held, code="X", message=said)

    found = [await store.get_job(actor.conn, job.id) for job in (one, two)]
    assert [job.error_code for job in found] == ["X", "X"]
    assert all(job.error_message and len(job.error_message) <= 4000 for job in found)


async def test_a_payload_that_python_cannot_read_does_not_hide_the_jobs_beside_it(conn: Any) -> None:
    odd = await conn.fetchval(
        "select id from ostinato.enqueue('work', ('{\"n\": 1' || repeat('0', 5000) || '}')::jsonb)"
    )
    await enqueue(conn, "work", {"n": 1})

    listed = {job.id: job.payload for job in await store.list_jobs(conn)}

    assert len(listed) == 2
    assert str(listed[odd]).startswith('{"n": 1000')


async def test_completing_the_same_claim_again_is_no_loss(actor: Actor) -> None:
    job = await claimed(actor)
    await store.complete(actor.conn, [job])

    assert await store.complete(actor.conn, [job]) == set()


async def test_calling_off_and_recovering_do_not_depend_on_partitions_made_ahead_either(actor: Actor) -> None:
    waiting, running = await enqueue(actor.conn, "work", delay="1h"), await claimed(actor)
    await store.cancel(actor.conn, running.id)
    await drop_partitions(actor.conn)

    assert await store.cancel(actor.conn, waiting.id) is Cancellation.CANCELLED
    await drop_partitions(actor.conn)
    await store.retire_workers(actor.conn, [actor.id])
    assert (await store.recover(actor.conn, max_attempts=5, poison=3)).cancelled == 1


async def drop_partitions(conn: Any) -> None:
    for row in await conn.fetch(
        "select relname from pg_class where relname ~ '^job_history_[0-9]{8}$' and relkind = 'r'"
    ):
        await conn.execute(f"drop table ostinato.{row['relname']}")

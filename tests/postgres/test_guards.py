"""Every illegal move, tried by plain SQL, is refused by the database itself."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from ostinato import enqueue, store
from ostinato.lifecycle import FINISHED, LIVE, ROOMS, State, allowed
from tests.postgres.actors import everything, hire

Connect = Callable[[], Awaitable[Any]]
ROOM_OF = {state: room for room, states in ROOMS.items() for state in states}

# The most careful way to write a state by hand: everything that its room asks for is set.
COLUMNS = {
    State.PENDING: "lease = null, worker_id = null, slot = null, cancel_requested_at = null, finished_at = null",
    State.RETRYING: "lease = null, worker_id = null, slot = null, cancel_requested_at = null, finished_at = null",
    State.RUNNING: "lease = 999999, worker_id = gen_random_uuid(), started_at = now(), finished_at = null",
}
CARRIED = "id, namespace, queue, job_type, payload, attempt, priority, run_at, created_at, attempts"


async def job_in(conn: Any, state: State) -> UUID:
    actor = await hire(conn)
    job_id: UUID = (await enqueue(conn, "work")).id
    if state is State.PENDING:
        return job_id
    if state is State.CANCELLED:
        await store.cancel(conn, job_id)
        return job_id
    job = await actor.claim_one()
    if state is State.RETRYING:
        await store.retry(conn, job.held, delay=timedelta(hours=1), code="X", message="boom")
    elif state is State.COMPLETED:
        await store.complete(conn, [job])
    elif state is State.DEAD_LETTERED:
        await store.dead_letter(conn, job.held, code="X", message="boom")
    return job_id


def forged(source: State, target: State) -> str:
    """Plain SQL that tries to take a job from one state to another, with everything invented that its room asks for."""
    here, there = ROOM_OF[source], ROOM_OF[target]
    if here == there:
        values = COLUMNS.get(target, "finished_at = now()")
        return f"update ostinato.{here} set state = '{target}', {values} where id = $1"
    extra = {
        State.COMPLETED: ("lease, started_at, finished_at", "1, now(), now()"),
        State.CANCELLED: ("lease, finished_at, cancel_requested_at", "1, now(), now()"),
        State.DEAD_LETTERED: ("finished_at, error_code", "now(), 'X'"),
        State.RUNNING: ("lease, worker_id, started_at", "999999, gen_random_uuid(), now()"),
    }.get(target, ("progress", "progress"))
    return (
        f"with gone as (delete from ostinato.{here} where id = $1 returning *) "
        f"insert into ostinato.{there} ({CARRIED}, state, {extra[0]}) "
        f"select {CARRIED}, '{target}', {extra[1]} from gone"
    )


ILLEGAL = [
    (source, target) for source, target in product(State, State) if not allowed(source, target) and source is not target
]


@pytest.mark.parametrize(("source", "target"), ILLEGAL)
async def test_an_illegal_move_is_refused(conn: Any, source: State, target: State) -> None:
    job_id = await job_in(conn, source)
    before = await everything(conn)

    with pytest.raises(asyncpg.IntegrityConstraintViolationError):
        await conn.execute(forged(source, target), job_id)

    assert await everything(conn) == before


@pytest.mark.parametrize("state", [state for state in State if state is not State.PENDING])
async def test_a_job_enters_as_pending_and_nothing_else(conn: Any, state: State) -> None:
    values = {
        State.RUNNING: "('work', 'running', 1, gen_random_uuid(), now(), null)",
        State.RETRYING: "('work', 'retrying', null, null, null, null)",
    }.get(state, f"('work', '{state}', null, null, null, now())")

    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match=r"a job enters as pending|violates check"):
        await conn.execute(
            f"insert into ostinato.jobs (job_type, state, lease, worker_id, started_at, finished_at) values {values}"
        )


@pytest.mark.parametrize(
    "column",
    ["lease = 1", "worker_id = gen_random_uuid()", "slot = 1", "cancel_requested_at = now()", "finished_at = now()"],
)
async def test_a_job_enters_held_by_nobody(conn: Any, column: str) -> None:
    name, _, value = column.partition(" = ")

    with pytest.raises(asyncpg.CheckViolationError, match="enters as pending and held by nobody"):
        await conn.execute(f"insert into ostinato.jobs (job_type, {name}) values ('work', {value})")


async def test_a_running_job_does_not_change_hands_without_stopping_first(conn: Any) -> None:
    job_id = await job_in(conn, State.RUNNING)

    with pytest.raises(asyncpg.CheckViolationError, match=r"may not move from running \(lease .*\) to running"):
        await conn.execute("update ostinato.jobs set lease = lease + 1 where id = $1", job_id)


async def test_a_waiting_job_holds_no_lease_and_a_running_one_does(conn: Any) -> None:
    running, pending = await job_in(conn, State.RUNNING), await job_in(conn, State.PENDING)
    retrying = await job_in(conn, State.RETRYING)

    for job_id, change in [
        (pending, "lease = 5"),
        (pending, "worker_id = gen_random_uuid()"),
        (pending, "slot = 1"),
        (pending, "cancel_requested_at = now()"),
        (pending, "finished_at = now()"),
        (pending, "state = 'running'"),
        (running, "lease = null"),
        (running, "worker_id = null"),
        (running, "started_at = null"),
        (running, "finished_at = now()"),
        (running, "state = 'pending'"),
        (running, "worker_id = gen_random_uuid()"),
        (running, "slot = 7"),
        (running, "state = 'bogus'"),
        (retrying, "state = 'bogus'"),
        (retrying, "state = 'completed'"),
        (pending, "attempt = -1"),
        (pending, "attempts = '5'"),
    ]:
        with pytest.raises(asyncpg.CheckViolationError, match="may not move"):
            await conn.execute(f"update ostinato.jobs set {change} where id = $1", job_id)


async def test_who_was_asked_to_stop_stays_asked(conn: Any) -> None:
    job_id = await job_in(conn, State.RUNNING)
    await store.cancel(conn, job_id)

    with pytest.raises(asyncpg.CheckViolationError, match="may not move"):
        await conn.execute("update ostinato.jobs set cancel_requested_at = null where id = $1", job_id)


@pytest.mark.parametrize("state", [State.PENDING, State.RETRYING])
async def test_a_waiting_job_cannot_just_be_removed(conn: Any, state: State) -> None:
    job_id = await job_in(conn, state)

    with pytest.raises(asyncpg.CheckViolationError, match="can only be cancelled or buried"):
        await conn.execute("delete from ostinato.jobs where id = $1", job_id)


@pytest.mark.parametrize("state", sorted(FINISHED))
async def test_history_does_not_change(conn: Any, state: State) -> None:
    job_id = await job_in(conn, state)

    with pytest.raises(asyncpg.CheckViolationError, match="finished jobs do not change"):
        await conn.execute("delete from ostinato.job_history where id = $1", job_id)
    with pytest.raises(asyncpg.CheckViolationError, match="may not move"):
        await conn.execute("update ostinato.job_history set payload = '{}' where id = $1", job_id)


@pytest.mark.parametrize("room", ["jobs", "dead_letters"])
async def test_an_id_does_not_change(conn: Any, room: str) -> None:
    job_id = await job_in(conn, State.PENDING if room == "jobs" else State.DEAD_LETTERED)

    with pytest.raises(asyncpg.CheckViolationError):
        await conn.execute(f"update ostinato.{room} set id = gen_random_uuid() where id = $1", job_id)


async def test_legal_moves_never_call_the_guards_function(conn: Any) -> None:
    await conn.execute("set track_functions = 'all'")

    for state in (*LIVE, *FINISHED, State.DEAD_LETTERED):
        await job_in(conn, state)
    await conn.execute("select pg_stat_force_next_flush()" if conn.get_server_version().major >= 15 else "select 1")

    called = await conn.fetch("select funcname, calls from pg_stat_user_functions where funcname = 'refuse_move'")
    assert called == []

"""The moves of a job (see `ostinato.lifecycle`), one statement each; a running job's are fenced by its lease."""

import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any, Final, TypeVar
from uuid import UUID

import asyncpg

from ostinato.errors import NotPossible
from ostinato.payload import encode_value
from ostinato.store import jobs, retention
from ostinato.store.job import Cancellation, Claimed, Held, Outcome
from ostinato.store.lanes import Lanes
from ostinato.store.statements import Connection, load, rows_in

SQL: Final = load("moves")
NOW: Final = timedelta(0)
BY_TIME: Final = attrgetter("run_at", "id")
BY_PRIORITY: Final = attrgetter("priority")
# As `Claimed._make` does it, without a look at the length: this is done for every job that runs.
_claimed: Final = partial(tuple.__new__, Claimed)
COMPLETE_ONE: Final = SQL["complete_one"]
LOST: Final = "OS001"  # as migrations/0001_jobs.sql raises it
LONGEST_MESSAGE: Final = 4000
LONGEST_CODE: Final = 100
Moved = TypeVar("Moved")


@dataclass(frozen=True, slots=True)
class Recovered:
    returned: int
    buried: int
    cancelled: int


@dataclass(frozen=True, slots=True)
class Unserved:
    """So many jobs of a type that nobody knows were buried."""

    namespace: str
    queue: str
    job_type: str
    job_version: int
    jobs: int


async def claim(
    conn: Connection, worker_id: UUID, lanes: Lanes, *, types: Collection[str], limit: int, hurry: bool = False
) -> list[Claimed]:
    """Up to `limit` ready jobs of types that the worker serves, by priority, then by time.

    `types` are names, with "@2" behind those of version 2 and so on. `hurry`: somebody has just said where something
    is, so take that first, and look for other lanes the next time.
    """
    stale, began = lanes.stale and not hurry, time.perf_counter()
    if stale:
        lanes.found(await jobs.find_lanes(conn, lanes.namespace, lanes.queues))
    rows = await _claim(conn, worker_id, lanes, list(types), limit)
    if stale:
        lanes.looked(time.perf_counter() - began)
    claimed = _in_order(rows)
    lanes.reached({(job.queue, job.priority, job.job_type): (job.run_at, job.id) for job in claimed})
    return claimed


def _in_order(rows: list[Any]) -> list[Claimed]:
    """By priority, then time: the database gives back rows as they lie on its pages."""
    claimed = sorted(map(_claimed, rows), key=BY_TIME)
    claimed.sort(key=BY_PRIORITY, reverse=True)
    return claimed


async def _claim(conn: Connection, worker_id: UUID, lanes: Lanes, types: list[str], limit: int) -> list[Any]:
    order = lanes.in_order()
    if not order or limit < 1:
        return []
    alone = _alone(conn)
    statement = SQL["claim_limited"] if lanes.limited else SQL["claim"]
    for _ in range(3):
        try:
            return await statement.fetch(
                conn,
                worker_id=worker_id,
                alone=alone,
                namespace=lanes.namespace,
                types=types,
                limit=limit,
                queues=[lane.queue for lane in order],
                priorities=[lane.priority for lane in order],
                marks=[lane.mark[0] for lane in order],
                mark_ids=[lane.mark[1] for lane in order],
                solos=[lane.solo for lane in order],
                limited=list(lanes.limited),
            )
        except asyncpg.UniqueViolationError:
            if not alone:
                raise  # The caller's transaction is lost; only the caller can begin it again.
            # The race for a concurrency key: between this statement's snapshot and its update another worker
            # started a job of the same key. The index refused the second one; look again.
            continue
    return []


def _alone(conn: Connection) -> bool:
    """Whether the next statement is a transaction of its own. The driver knows; a pool's always is."""
    in_transaction = getattr(conn, "is_in_transaction", None)
    return in_transaction is None or not in_transaction()


async def complete(conn: Connection, held: Sequence[Held | Claimed], outputs: Sequence[Any] = ()) -> set[UUID]:
    """Move them to history. The ids that come back were lost to another worker: their results do not count.

    `outputs` are in the order of `held`; where there are fewer, the rest has none. Saying it again of a claim that has
    completed is no loss: the worker may not have heard the answer.
    """
    ids, leases = [fence.id for fence in held], [fence.lease for fence in held]
    encoded = [encode_value("output", output) for output in outputs]
    status = await _into_history(conn, lambda: SQL["complete"].execute(conn, ids=ids, leases=leases, outputs=encoded))
    if rows_in(status) == len(ids):
        return set()
    return {row["id"] for row in await SQL["find_lost"].fetch(conn, ids=ids, leases=leases)}


async def complete_one(conn: Connection, held: Held | Claimed, output: Any = None) -> bool:
    """In the transaction that did its work. False: the lease was lost, and that transaction has failed."""
    try:
        await COMPLETE_ONE.execute(conn, **_ended(held, output))
    except asyncpg.PostgresError as error:
        if not is_lost(error):
            raise
        return False
    return True


def completion(held: Held | Claimed, output: Any = None, *, prepared: str | None = None) -> str:
    """That statement as text, to be sent together with others; what it raises then, `is_lost` knows.

    `prepared`: the name of COMPLETE_ONE in this session, where it need not be planned anew.
    """
    ended = _ended(held, output)
    return COMPLETE_ONE.called(prepared, **ended) if prepared else COMPLETE_ONE.spelled(**ended)


def _ended(held: Held | Claimed, output: Any) -> dict[str, Any]:
    return {"id": held.id, "lease": held.lease, "output": encode_value("output", output)}


def is_lost(error: BaseException) -> bool:
    return getattr(error, "sqlstate", None) == LOST


async def _into_history(conn: Connection, move: Callable[[], Awaitable[Moved]]) -> Moved:
    """A move that ends in history. Nobody may have made partitions ahead: ending a job must not depend on that.

    Inside a caller's transaction the failure has undone it already, so there it is the caller's to do again.
    """
    try:
        return await move()
    except asyncpg.CheckViolationError as error:
        if "no partition" not in str(error) or not _alone(conn):
            raise
        await retention.make_partitions(conn)
        return await move()


def storable(text: str) -> str:
    """What a handler says may be anything; Postgres takes no NUL and no half of a surrogate pair."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()[:LONGEST_MESSAGE]


async def retry(conn: Connection, held: Held, *, delay: timedelta, code: str, message: str) -> Outcome:
    """The attempt failed; try again after `delay`."""
    code, message = storable(code)[:LONGEST_CODE], storable(message)
    moved = await SQL["retry"].fetchval(conn, id=held.id, lease=held.lease, delay=delay, code=code, message=message)
    return Outcome.MOVED if moved else await stop(conn, held, code=code, message=message)


async def snooze(
    conn: Connection, held: Held, *, delay: timedelta | None = None, until: datetime | None = None
) -> Outcome:
    """Call it again later, as its handler asked. No attempt is spent."""
    moved = await SQL["snooze"].fetchval(conn, id=held.id, lease=held.lease, delay=delay or NOW, run_at=until)
    return Outcome.MOVED if moved else await stop(conn, held)


async def release(conn: Connection, held: Sequence[Held | Claimed]) -> set[UUID]:
    """Give them back unfinished, for another worker to take at once. No attempt is spent."""
    fences = {"ids": [fence.id for fence in held], "leases": [fence.lease for fence in held]}
    rows = await SQL["release"].fetch(conn, **fences)
    moved = {row["id"] for row in rows}
    if len(moved) < len(held):
        stop = SQL["stop"]
        rows = await _into_history(conn, lambda: stop.fetch(conn, **fences, code=None, message=None))
        moved |= {row["id"] for row in rows}
    return moved


async def dead_letter(conn: Connection, held: Held, *, code: str, message: str) -> Outcome:
    """Do not try it again until a person says so."""
    code, message = storable(code)[:LONGEST_CODE], storable(message)
    moved = await SQL["dead_letter"].fetchval(conn, id=held.id, lease=held.lease, code=code, message=message)
    return Outcome.MOVED if moved else await stop(conn, held, code=code, message=message)


async def stop(conn: Connection, held: Held, *, code: str | None = None, message: str | None = None) -> Outcome:
    """The handler has stopped, as a person had asked; nothing happens if nobody had."""
    code, message = (None if text is None else storable(text) for text in (code, message))
    moved = await _into_history(
        conn, lambda: SQL["stop"].fetchval(conn, ids=[held.id], leases=[held.lease], code=code, message=message)
    )
    return Outcome.CANCELLED if moved else Outcome.LOST


async def cancel(conn: Connection, job_id: UUID, *, reason: str | None = None) -> Cancellation:
    """Call a job off: at once if it waits, by asking its worker if it runs, not at all if it has finished."""
    reason = None if reason is None else storable(reason)
    outcome = await _into_history(conn, lambda: SQL["cancel"].fetchval(conn, id=job_id, reason=reason))
    if outcome is not None:
        return Cancellation(outcome)
    # It was not live. A second look, since it may have finished after the first one's snapshot.
    await jobs.get_job(conn, job_id)
    return Cancellation.FINISHED


async def hasten(conn: Connection, job_id: UUID) -> None:
    """Run a waiting job now instead of later."""
    if await SQL["hasten"].fetchval(conn, id=job_id) is None:
        job = await jobs.get_job(conn, job_id)
        raise NotPossible(f"job {job_id} is {job.state}; only a waiting job can be hastened")


async def redrive(
    conn: Connection,
    job_ids: Sequence[UUID],
    *,
    delay: timedelta | None = None,
    at: datetime | None = None,
    reset_attempts: bool = False,
) -> set[UUID]:
    """Try dead letters again: now, after a delay, or at a time. Ids that are no dead letters do not come back.

    Without `reset_attempts` each gets one more attempt before it is a dead letter again.
    """
    rows = await SQL["redrive"].fetch(conn, ids=list(job_ids), run_at=at, delay=delay, reset=reset_attempts)
    return {row["id"] for row in rows}


async def recover(conn: Connection, *, max_attempts: int, poison: int, limit: int = 10_000) -> Recovered:
    """Take back what dead workers held. `max_attempts` is for types of which nobody said it."""
    message = "its worker died or was cut off while it ran"
    given = {"max_attempts": max_attempts, "poison": poison, "limit": limit, "message": message}
    row = await _into_history(conn, lambda: SQL["recover"].fetchrow(conn, **given))
    return Recovered(row["returned"], row["buried"], row["cancelled"])


async def bury_unserved(conn: Connection, *, grace: timedelta, limit: int = 10_000) -> list[Unserved]:
    """Do not keep jobs waiting whose type no worker of their namespace has known for so long after they were due.

    A queue that nobody serves is left alone, and so is one that had nobody when the grace began.
    """
    return [Unserved(**row) for row in await SQL["bury_unserved"].fetch(conn, grace=grace, limit=limit)]


async def progress(conn: Connection, held: Held, value: Any) -> bool:
    """Say how far it is. False: the lease was lost, and nothing was written."""
    found = await jobs.SQL["progress"].fetchval(
        conn, id=held.id, lease=held.lease, progress=encode_value("progress", value)
    )
    return found is not None

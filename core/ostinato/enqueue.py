"""Enqueue jobs in the caller's own transaction: they exist when, and only when, that transaction commits.

result = await enqueue(conn, "send_email", {"to": "a@example.com"}, delay="5m")
result = enqueue(session, "send_email", {"to": "a@example.com"})        # a synchronous connection: no await
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from ostinato import drivers
from ostinato.durations import Duration
from ostinato.errors import InvalidArgument
from ostinato.newjob import CHECKS, Dedup, Enqueued, NewJob, check_options, encode_payload
from ostinato.store.statements import load

if TYPE_CHECKING:
    import asyncpg
    import psycopg
    import sqlalchemy.orm
    from asyncpg.pool import PoolConnectionProxy
    from sqlalchemy.ext.asyncio import AsyncConnection as SqlalchemyAsyncConnection
    from sqlalchemy.ext.asyncio import AsyncSession

    AsyncDriver = (
        asyncpg.Connection[Any]
        | asyncpg.Pool[Any]
        | PoolConnectionProxy[Any]
        | psycopg.AsyncConnection[Any]
        | SqlalchemyAsyncConnection
        | AsyncSession
    )
    SyncDriver = psycopg.Connection[Any] | sqlalchemy.Connection | sqlalchemy.orm.Session

SQL: Final = load("enqueue")
OPTIONS: Final = ("job_type", *CHECKS)
PLAIN: Final = SQL.choices["enqueue_plain"]
UNSAID: Final = dict.fromkeys(CHECKS)
Checked = TypeVar("Checked")


@overload
def enqueue(
    conn: "AsyncDriver",
    job_type: str,
    payload: Any = None,
    *,
    namespace: str | None = None,
    queue: str | None = None,
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: Duration | None = None,
    dedup_key: str | None = None,
    dedup: Dedup | None = None,
    idempotency_key: str | None = None,
    idempotency_ttl: Duration | None = None,
    max_attempts: int | None = None,
    timeout: Duration | None = None,
    context: Any = None,
    job_version: int | None = None,
    concurrency_key: str | None = None,
) -> Awaitable[Enqueued]: ...
@overload
def enqueue(
    conn: "SyncDriver",
    job_type: str,
    payload: Any = None,
    *,
    namespace: str | None = None,
    queue: str | None = None,
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: Duration | None = None,
    dedup_key: str | None = None,
    dedup: Dedup | None = None,
    idempotency_key: str | None = None,
    idempotency_ttl: Duration | None = None,
    max_attempts: int | None = None,
    timeout: Duration | None = None,
    context: Any = None,
    job_version: int | None = None,
    concurrency_key: str | None = None,
) -> Enqueued: ...
def enqueue(conn: Any, job_type: str, payload: Any = None, **options: Any) -> Any:
    """Enqueue one job. What is not given, or None, has the database's default.

    run_at, delay            when: at a time with a zone, or after "5m", seconds or a timedelta; now if neither
    dedup_key, dedup         at most one live job of the type and key: "skip" keeps the earlier job, "replace" lets
                             the new one take the place of one that waits, "enqueue" stacks them all the same
    idempotency_key          the same key again gives back the first job, also after that has finished,
                             for idempotency_ttl (a day)
    concurrency_key          at most one job of this key runs at a time, in order
    max_attempts, timeout    instead of what the job's type says
    """
    given = check_options(job_type, options)
    given["payload"] = encode_payload(payload)
    if "dedup_key" in given or "idempotency_key" in given:
        return drivers.run(conn, SQL["enqueue"], UNSAID | given, _first)
    if "delay" in given or "run_at" in given:
        given = {"run_at": None, "delay": None} | given
    return drivers.run(conn, PLAIN.given(frozenset(given)), given, _first)


@overload
def enqueue_many(conn: "AsyncDriver", jobs: Iterable[NewJob]) -> Awaitable[list[Enqueued]]: ...
@overload
def enqueue_many(conn: "SyncDriver", jobs: Iterable[NewJob]) -> list[Enqueued]: ...
def enqueue_many(conn: Any, jobs: Iterable[NewJob]) -> Any:
    """Enqueue many jobs in one statement, all or none; the answers come in the order of the jobs."""
    jobs = list(jobs)
    if any(job.keyed for job in jobs):
        return drivers.run(conn, SQL["enqueue_each"], _each(jobs), _all)
    return drivers.run(conn, SQL["enqueue_many"], _by_kind(jobs), _all)


def _each(jobs: Sequence[NewJob]) -> dict[str, Any]:
    rows = [_checked(place, job.options) for place, job in enumerate(jobs)]
    return _columns(rows) | {"payloads": _payloads(jobs)}


def _by_kind(jobs: Sequence[NewJob]) -> dict[str, Any]:
    """Jobs with the same options share a kind, so that these are checked and sent once."""
    kinds: dict[tuple[Any, ...], int] = {}
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    for place, job in enumerate(jobs):
        options = job.raw_options()
        try:
            number = kinds.get(options)
        except TypeError:  # a context is a dict, which cannot be a key: a kind of its own
            options, number = (place,), None
        if number is None:
            rows.append(_checked(place, job.options))
            number = kinds[options] = len(rows)
        numbers.append(number)
    return _columns(rows) | {"kinds": numbers, "payloads": _payloads(jobs)}


def _payloads(jobs: Sequence[NewJob]) -> list[str]:
    try:
        return [job.encoded_payload() for job in jobs]
    except InvalidArgument:
        return [_checked(place, job.encoded_payload) for place, job in enumerate(jobs)]


def _checked(place: int, check: Callable[[], Checked]) -> Checked:
    try:
        return check()
    except InvalidArgument as error:
        raise InvalidArgument(f"jobs[{place}].{error.argument}", error.value, error.rule) from None


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row.get(name) for row in rows] for name in OPTIONS}


def _first(rows: drivers.Rows) -> Enqueued:
    job_id, created, *_ = rows[0]
    return Enqueued(job_id, created)


def _all(rows: drivers.Rows) -> list[Enqueued]:
    return list(map(Enqueued._make, rows))

"""What was enqueued, as the caller's own connection sees it: also what its transaction has not committed.

Jobs count in whichever room they are, so that a worker beside the test makes no difference. On a synchronous connection
the answer comes at once; on an asynchronous one it must be awaited.
"""

from collections.abc import Awaitable, Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, overload

from typing_extensions import Unpack

from ostinato import drivers
from ostinato.store.job import Job
from ostinato.store.statements import load
from ostinato.testing.expected import Expectations, Expected, JobType, describe

if TYPE_CHECKING:
    from ostinato.enqueue import AsyncDriver, SyncDriver

LIST_JOBS: Final = load("jobs").choices["list_jobs"].given(frozenset())
COLUMNS: Final = [field.name for field in fields(Job)]


@overload
def enqueued(
    conn: "AsyncDriver",
    job_type: JobType | None = None,
    payload: Any = None,
    **expected: Unpack[Expectations],
) -> Awaitable[list[Job]]: ...
@overload
def enqueued(
    conn: "SyncDriver",
    job_type: JobType | None = None,
    payload: Any = None,
    **expected: Unpack[Expectations],
) -> list[Job]: ...
def enqueued(conn: Any, job_type: JobType | None = None, payload: Any = None, **expected: Any) -> Any:
    """The jobs that are like this, in the order in which they were enqueued; what is not given does not matter."""
    wanted = Expected.read(job_type, payload, expected)
    return _look(conn, lambda jobs: _like(wanted, jobs))


@overload
def assert_enqueued(
    conn: "AsyncDriver",
    job_type: JobType,
    payload: Any = None,
    *,
    count: int | None = None,
    **expected: Unpack[Expectations],
) -> Awaitable[Job]: ...
@overload
def assert_enqueued(
    conn: "SyncDriver",
    job_type: JobType,
    payload: Any = None,
    *,
    count: int | None = None,
    **expected: Unpack[Expectations],
) -> Job: ...
def assert_enqueued(
    conn: Any, job_type: JobType, payload: Any = None, *, count: int | None = None, **expected: Any
) -> Any:
    """There is a job like this, or are exactly `count` of them; gives back the first.

    Of a payload and a context only what is given must be there. `delay` is from when it was enqueued until it is due.
    """
    wanted = Expected.read(job_type, payload, expected)
    return _look(conn, lambda jobs: _first(wanted, count, jobs))


@overload
def assert_not_enqueued(
    conn: "AsyncDriver",
    job_type: JobType | None = None,
    payload: Any = None,
    **expected: Unpack[Expectations],
) -> Awaitable[None]: ...
@overload
def assert_not_enqueued(
    conn: "SyncDriver",
    job_type: JobType | None = None,
    payload: Any = None,
    **expected: Unpack[Expectations],
) -> None: ...
def assert_not_enqueued(conn: Any, job_type: JobType | None = None, payload: Any = None, **expected: Any) -> Any:
    """There is no job like this; without a type, none at all."""
    wanted = Expected.read(job_type, payload, expected)
    return _look(conn, lambda jobs: _none(wanted, jobs))


def _look(conn: Any, judge: Callable[[list[Job]], Any]) -> Any:
    # A limit of null is none: a job that is not looked at would be one that was not enqueued.
    return drivers.run(conn, LIST_JOBS, {"limit": None}, lambda rows: judge(_in_order(rows)))


def _in_order(rows: drivers.Rows) -> list[Job]:
    """Made in the order of time, ids sort so."""
    jobs = [Job.read(dict(zip(COLUMNS, row, strict=True))) for row in rows]
    return sorted(jobs, key=lambda job: job.id)


def _like(wanted: Expected, jobs: list[Job]) -> list[Job]:
    return [job for job in wanted.of_type(jobs) if not wanted.differences(job)]


def _first(wanted: Expected, count: int | None, jobs: list[Job]) -> Job | None:
    __tracebackhide__ = True
    found = _like(wanted, jobs)
    if count is None and not found:
        raise AssertionError(f"no {wanted} was enqueued; {describe(wanted, jobs)}")
    if count is not None and len(found) != count:
        raise AssertionError(f"{len(found)} {wanted} were enqueued, not {count}; {describe(wanted, jobs)}")
    return found[0] if found else None


def _none(wanted: Expected, jobs: list[Job]) -> None:
    __tracebackhide__ = True
    if found := _like(wanted, jobs):
        raise AssertionError(f"{len(found)} {wanted} were enqueued, not none; {describe(wanted, found)}")

"""Time in tests: a clock for handlers, and a way to let time pass for jobs that are stored.

They are two, since what is due is decided by the database's clock, which nobody can set.
"""

from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, overload

from ostinato import drivers
from ostinato.durations import Duration, parse_duration
from ostinato.errors import InvalidArgument
from ostinato.newjob import as_interval
from ostinato.store.statements import load

if TYPE_CHECKING:
    from ostinato.enqueue import AsyncDriver, SyncDriver

SQL: Final = load("testing")


class Clock:
    """What `ctx.now()` says. It stands still until it is set or advanced."""

    def __init__(self, at: datetime | None = None) -> None:
        self._now = datetime.now(UTC) if at is None else _with_zone(at)

    def now(self) -> datetime:
        return self._now

    def set(self, at: datetime) -> None:
        self._now = _with_zone(at)

    def advance(self, duration: Duration) -> None:
        self._now += parse_duration("duration", duration)


@overload
def advance(conn: "AsyncDriver", duration: Duration) -> Awaitable[int]: ...
@overload
def advance(conn: "SyncDriver", duration: Duration) -> int: ...
def advance(conn: Any, duration: Duration) -> Any:
    """Let time pass in this database, for waiting jobs, idempotency keys and rates: how many jobs are due then."""
    return shift(conn, parse_duration("duration", duration))


def shift(conn: Any, by: timedelta) -> Any:
    return drivers.run(conn, SQL["advance"], {"by": as_interval(by)}, _due)


def _due(rows: drivers.Rows) -> int:
    due, _ = rows[0]
    return int(due)


def _with_zone(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise InvalidArgument("at", at, "it must have a time zone, such as datetime(2026, 1, 31, tzinfo=UTC)")
    return at

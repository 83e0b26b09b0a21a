"""How long ago, or how soon, in as many characters as a table has room for. `now` is the database's."""

from datetime import UTC, datetime, timedelta

from ostinato.durations import format_duration


def age(then: datetime | None, now: datetime) -> str:
    """'5m', '3d2h'; fractions of a second are nobody's business here."""
    return "-" if then is None else _whole(now - then)


def until(then: datetime, now: datetime) -> str:
    """'in 5m', or 'for 5m' if that time has come."""
    return f"in {_whole(then - now)}" if then > now else f"for {_whole(now - then)}"


def at(then: datetime | None, now: datetime) -> str:
    """'2026-01-31 09:00:00 UTC (5m ago)'"""
    if then is None:
        return "-"
    when = f"in {_whole(then - now)}" if then > now else f"{_whole(now - then)} ago"
    return f"{then.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC ({when})"


def _whole(length: timedelta) -> str:
    return format_duration(timedelta(seconds=max(0, int(length.total_seconds()))))

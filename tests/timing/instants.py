"""Short ways to ask a timing, and to read its answer."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from ostinato.timing import read_timing


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(after: str, count: int, **schedule: Any) -> list[str]:
    """The next ones as a clock there shows them."""
    timing = read_timing(**schedule)
    return [f"{due.at.astimezone(timing.zone):%m-%d %H:%M}" for due in timing.upcoming(at(after), count)]


def gone(after: str, count: int, **schedule: Any) -> list[int]:
    """Minutes of elapsed time from each to the next."""
    instants = [due.at for due in read_timing(**schedule).upcoming(at(after), count + 1)]
    return [int((b - a).total_seconds() / 60) for a, b in pairwise(instants)]

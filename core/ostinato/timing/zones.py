"""Time zones as stretches of time in which the clock runs evenly. Reads the time zone database, and nothing else."""

import difflib
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from ostinato.errors import InvalidArgument

RULE: Final = "it must be a name of the IANA time zone database, such as Europe/Berlin or UTC"
# Files that are in the database's folders, but no places: with leap seconds, or whatever this machine is set to.
NO_ZONES: Final = ("right/", "posix/", "posixrules", "localtime", "Factory", "build/")
SECOND: Final = timedelta(seconds=1)
# No shift of a clock is longer: islands that moved across the date line skipped or repeated a whole day.
LONGEST_SHIFT: Final = timedelta(days=2)


@dataclass(frozen=True)
class Stretch:
    """From `start` until before `end`, both in UTC and naive, the clock is `offset` ahead of UTC."""

    start: datetime
    end: datetime
    before: timedelta
    offset: timedelta
    after: timedelta


@dataclass(frozen=True)
class Change:
    """From `at` (UTC, naive) on, the clock is `offset` ahead of UTC, and no longer `before`."""

    at: datetime
    before: timedelta
    offset: timedelta

    @property
    def shift(self) -> timedelta:
        """Forward if positive: so much time of the clock does not exist. Backward: so much exists twice."""
        return self.offset - self.before


def find_zone(name: str) -> ZoneInfo:
    """zoneinfo keeps those that were found."""
    if not isinstance(name, str) or not name or name.startswith(NO_ZONES):
        raise InvalidArgument("timeZone", name, RULE)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidArgument("timeZone", name, RULE + _similar(name)) from None


def _similar(name: str) -> str:
    known = {zone.casefold(): zone for zone in available_timezones()}
    cities = {zone.rpartition("/")[2]: full for zone, full in known.items()}
    asked = name.casefold().replace(" ", "_")
    for names in (known, cities):
        if found := difflib.get_close_matches(asked, names, n=1, cutoff=0.75):
            return f"; did you mean {names[found[0]]}?"
    return ""


def on_clock(zone: ZoneInfo, instant: datetime) -> datetime:
    """What a clock there shows, as a naive time; `instant` is in UTC."""
    return instant.astimezone(zone).replace(tzinfo=None)


def earliest_showing(zone: ZoneInfo, wall: datetime) -> datetime:
    """The first instant at which a clock there shows `wall`, or that much later if it never does: UTC, naive."""
    return wall - _whole(wall.replace(tzinfo=zone, fold=0).utcoffset())


@lru_cache(maxsize=8192)
def changes(zone: ZoneInfo, year: int) -> tuple[Change, ...]:
    """Of that year in UTC, and of the two days before and after it."""
    start, end = datetime(year, 1, 1) - LONGEST_SHIFT, datetime(year + 1, 1, 1) + LONGEST_SHIFT
    found = []
    while start < end:
        next_day = start + timedelta(days=1)
        before, offset = offset_at(zone, start), offset_at(zone, next_day)
        if before != offset:
            found.append(Change(_moment_of_change(zone, start, next_day), before, offset))
        start = next_day
    return tuple(found)


def _moment_of_change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    old = offset_at(zone, before)
    while after - before > SECOND:
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        before, after = (middle, after) if offset_at(zone, middle) == old else (before, middle)
    return after


def offset_at(zone: ZoneInfo, instant: datetime) -> timedelta:
    return _whole(instant.replace(tzinfo=UTC).astimezone(zone).utcoffset())


def _whole(offset: timedelta | None) -> timedelta:
    return offset or timedelta(0)


def stretch_at(zone: ZoneInfo, instant: datetime) -> Stretch:
    """The even stretch around that instant (UTC, naive), cut off at the ends of its year."""
    year = instant.year
    known = changes(zone, year)
    place = bisect_right(known, instant, key=lambda change: change.at)
    if place:
        start, before, offset = known[place - 1].at, known[place - 1].before, known[place - 1].offset
    else:
        offset = before = known[0].before if known else offset_at(zone, instant)
        start = datetime(year, 1, 1)
    if place < len(known):
        return Stretch(start, known[place].at, before, offset, known[place].offset)
    return Stretch(start, datetime(year + 1, 1, 1), before, offset, offset)

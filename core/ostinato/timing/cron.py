"""A cron expression, as times on a clock on the wall. It knows no zone and no UTC: see `clockwork.py`.

croniter reads the fields (`reading.py`); stepping from one match to the next is ours (decision 12).
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from croniter import CroniterError

from ostinato.errors import InvalidArgument
from ostinato.timing.days import Days
from ostinato.timing.fields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, YEAR, Refused
from ostinato.timing.reading import SHAPE, Reading, read

LAST_YEAR: Final = YEAR.high
LONGEST: Final = 500
# Only with an H does the key matter, and the same expression need not be read for every schedule.
HASHED: Final = re.compile(r"(?<![A-Z@])H(?![A-Z])")


@dataclass(frozen=True)
class Cron:
    """An expression that was read.

    `elapsed` says that it means a length of time more than a time of day: its second or minute field goes on by steps
    ('*', '*/5', '0-59/5', '10/5', 'H/5', or all 60 of them; more than one value), or its hour field holds all 24 hours
    ('*', '0-23'). Such an expression is due whenever the clock shows a matching time. An hour field with larger steps
    ('0 */6 * * *') does not count: it names times of day, and at its gaps and overlaps the policy is asked.
    """

    text: str
    fields: tuple[str, ...]
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: Days
    elapsed: bool

    @classmethod
    def parse(cls, text: str, key: str | None = None) -> "Cron":
        """`key` is what `H` is hashed from, such as "payments/seller-disbursement"."""
        if not isinstance(text, str) or len(text) > LONGEST:
            raise InvalidArgument("cron", text, f"it must be a text of at most {LONGEST} characters; {SHAPE}")
        return _parsed(text, key if HASHED.search(text.upper()) else None)

    def first_from(self, wall: datetime) -> datetime | None:
        """The first match at or after `wall`, a naive time of whole seconds."""
        days = self.days.of(wall.year, wall.month)
        place = bisect_left(days, wall.day)
        if place < len(days) and days[place] == wall.day:
            if (time := self._time_from(wall.hour, wall.minute, wall.second)) is not None:
                return wall.replace(hour=time[0], minute=time[1], second=time[2])
            place += 1
        first = self.hours[0], self.minutes[0], self.seconds[0]
        if place < len(days):
            return datetime(wall.year, wall.month, days[place], *first)
        return self._in_later_month(wall.year, wall.month, first)

    def _in_later_month(self, year: int, month: int, time: tuple[int, int, int]) -> datetime | None:
        while year <= LAST_YEAR:
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
            if days := self.days.of(year, month):
                return datetime(year, month, days[0], *time) if year <= LAST_YEAR else None
        return None

    def _time_from(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        hours, minutes, seconds = self.hours, self.minutes, self.seconds
        h = bisect_left(hours, hour)
        if h < len(hours) and hours[h] == hour:
            m = bisect_left(minutes, minute)
            if m < len(minutes) and minutes[m] == minute:
                s = bisect_left(seconds, second)
                if s < len(seconds):
                    return hour, minute, seconds[s]
                m += 1
            if m < len(minutes):
                return hour, minutes[m], seconds[0]
            h += 1
        return (hours[h], minutes[0], seconds[0]) if h < len(hours) else None


@lru_cache(maxsize=16_384)
def _parsed(text: str, key: str | None) -> Cron:
    try:
        cron = _assembled(text, read(text, key))
        if cron.first_from(datetime(YEAR.low, 1, 1)) is None:
            raise Refused("it never matches: no such day is in any of its months and years")
    except (Refused, CroniterError) as error:
        raise InvalidArgument("cron", text, str(error)) from None
    return cron


def _assembled(text: str, reading: Reading) -> Cron:
    hours = reading.values(HOUR)
    return Cron(
        text=text,
        fields=reading.parts,
        seconds=reading.values(SECOND),
        minutes=reading.values(MINUTE),
        hours=hours,
        days=_days(reading),
        elapsed=reading.steps(SECOND) or reading.steps(MINUTE) or len(hours) == 24,
    )


def _days(reading: Reading) -> Days:
    return Days(
        months=frozenset(reading.values(MONTH)),
        years=reading.restricted(YEAR),
        days=reading.restricted(DAY),
        last=reading.last_day,
        weekdays=reading.restricted(WEEKDAY),
        nth=frozenset((day, 0 if n == "l" else n) for day, ns in reading.nth.items() for n in ns),
    )

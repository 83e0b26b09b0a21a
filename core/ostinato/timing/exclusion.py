"""Dates, ranges of dates and ranges of times at which a schedule does not run."""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from ostinato.errors import InvalidArgument
from ostinato.timing.zones import earliest_showing

RULE: Final = (
    "write a date '2026-12-25', dates '2026-12-24/2026-12-26' (both are excluded), "
    "or times '2026-12-24T18:00/2026-12-26T06:00' (the end is not), as the schedule's zone shows them"
)
DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?", re.ASCII)
DAY: Final = timedelta(days=1)


@dataclass(frozen=True)
class Exclusion:
    """From `start` until before `end`, on the clock of the schedule's zone. `text` is how it was written."""

    text: str
    start: datetime
    end: datetime

    @classmethod
    def parse(cls, argument: str, value: str | date) -> "Exclusion":
        """`argument` is what the error calls it, such as 'exclude[0]'. YAML makes dates of what looks like one."""
        text = value.isoformat() if isinstance(value, date) else str(value)
        try:
            start, end = _bounds(text)
        except (ValueError, OverflowError):
            raise InvalidArgument(argument, value, RULE) from None
        if end <= start:
            raise InvalidArgument(argument, value, "its end must be after its start")
        return cls(text, start, end)

    def covers(self, wall: datetime) -> bool:
        return self.start <= wall < self.end

    def ends(self, zone: ZoneInfo) -> datetime:
        """UTC, naive; where a clock is put back just there, once more may be excluded later."""
        return earliest_showing(zone, self.end)


def _bounds(text: str) -> tuple[datetime, datetime]:
    start, slash, end = text.partition("/")
    end = end if slash else start
    if DATE.fullmatch(start) and DATE.fullmatch(end):
        return datetime.fromisoformat(start), datetime.fromisoformat(end) + DAY
    if TIME.fullmatch(start) and TIME.fullmatch(end) and slash:
        return datetime.fromisoformat(start), datetime.fromisoformat(end)
    raise ValueError(text)

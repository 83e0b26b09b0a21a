"""A cron expression on the clocks of a place: what becomes of times that do not exist, or exist twice."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from ostinato.timing.cron import LAST_YEAR, Cron
from ostinato.timing.fields import YEAR
from ostinato.timing.zones import LONGEST_SHIFT, Stretch, stretch_at

BEGINNING: Final = datetime(YEAR.low, 1, 1) - timedelta(seconds=1)
SECOND: Final = timedelta(seconds=1)
NOTHING: Final = timedelta(0)


class Gap(StrEnum):
    """A clock is put forward, and a time that is due does not exist."""

    RUN_AFTER = "RunAfter"
    SKIP = "Skip"


class Overlap(StrEnum):
    """A clock is put back, and a time that is due exists twice."""

    FIRST = "First"
    SECOND = "Second"
    BOTH = "Both"


@dataclass(frozen=True)
class Clockwork:
    """Walks from one even stretch of time to the next. Inside, a clock there is UTC and a constant.

    An expression that is `elapsed` is due whenever the clock shows a matching time: nothing in a gap, each time of an
    overlap. The policies are for all others: of all their times in one gap, one instant becomes due, its end.
    """

    cron: Cron
    zone: ZoneInfo
    gap: Gap = Gap.RUN_AFTER
    overlap: Overlap = Overlap.FIRST

    def next_after(self, instant: datetime) -> datetime | None:
        whole = max(instant.replace(microsecond=0, tzinfo=None), BEGINNING)
        found = self._first_from(whole + SECOND) if whole.year <= LAST_YEAR else None
        return found and found.replace(tzinfo=UTC)

    def _first_from(self, instant: datetime) -> datetime | None:
        """From here on all instants are in UTC, naive and whole seconds: twice as fast."""
        while instant.year <= LAST_YEAR:
            stretch = stretch_at(self.zone, instant)
            if self._is_after_gap(stretch, instant):
                return instant
            wall = self.cron.first_from(max(instant, self._opens(stretch)) + stretch.offset)
            if wall is not None and wall - stretch.offset < self._closes(stretch):
                return wall - stretch.offset
            later = self._later(stretch, instant)
            if later is None:
                return None
            instant = later
        return None

    def _is_after_gap(self, stretch: Stretch, instant: datetime) -> bool:
        if instant != stretch.start or stretch.offset <= stretch.before:
            return False
        if self.cron.elapsed or self.gap is Gap.SKIP:
            return False
        missed = self.cron.first_from(instant + stretch.before)
        return missed is not None and missed < instant + stretch.offset

    def _opens(self, stretch: Stretch) -> datetime:
        """Behind the times that the clock has shown before, if their first time is the one that counts."""
        counts = self.cron.elapsed or self.overlap is not Overlap.FIRST
        return stretch.start if counts else stretch.start + max(NOTHING, stretch.before - stretch.offset)

    def _closes(self, stretch: Stretch) -> datetime:
        """Before the times that the clock will show again, if their second time is the one that counts."""
        counts = self.cron.elapsed or self.overlap is not Overlap.SECOND
        return stretch.end if counts else stretch.end - max(NOTHING, stretch.offset - stretch.after)

    def _later(self, stretch: Stretch, instant: datetime) -> datetime | None:
        """The next stretch, or one years ahead if no clock can show a match until then."""
        if stretch.end - instant <= LONGEST_SHIFT:
            return stretch.end
        wall = self.cron.first_from(instant + stretch.offset)
        return None if wall is None else max(stretch.end, wall - LONGEST_SHIFT)

"""When schedules are due: instants in, instants out. No I/O but the time zone database, no clock, no chance."""

from ostinato.timing.clockwork import Clockwork, Gap, Overlap
from ostinato.timing.cron import Cron
from ostinato.timing.exclusion import Exclusion
from ostinato.timing.interval import Interval
from ostinato.timing.timing import Cadence, Due, Timing, read_timing
from ostinato.timing.words import in_words
from ostinato.timing.zones import Change, changes, find_zone

__all__ = [
    "Cadence",
    "Change",
    "Clockwork",
    "Cron",
    "Due",
    "Exclusion",
    "Gap",
    "Interval",
    "Overlap",
    "Timing",
    "changes",
    "find_zone",
    "in_words",
    "read_timing",
]

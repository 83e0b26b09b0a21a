"""Which days of a month an expression names."""

import calendar
from dataclasses import dataclass, field
from typing import Final

Month = tuple[int, int]
# Months, for each expression: enough for the next few instants, and little if thousands of expressions wait years.
REMEMBERED: Final = 60


@dataclass(frozen=True)
class Days:
    """Days of the month and days of the week; where both are restricted, either is enough, as cron has it."""

    months: frozenset[int]
    years: frozenset[int] | None
    days: frozenset[int] | None
    last: bool
    weekdays: frozenset[int] | None
    # (weekday, how manieth); 0 is the last one.
    nth: frozenset[tuple[int, int]]
    _known: dict[Month, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    def of(self, year: int, month: int) -> tuple[int, ...]:
        """In order, perhaps none."""
        known = self._known.get((year, month))
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = self._known[year, month] = self._find(year, month)
        return known

    def _find(self, year: int, month: int) -> tuple[int, ...]:
        if month not in self.months or (self.years is not None and year not in self.years):
            return ()
        length = calendar.monthrange(year, month)[1]
        return tuple(day for day in range(1, length + 1) if self._has(year, month, day, length))

    def _has(self, year: int, month: int, day: int, length: int) -> bool:
        by_day = self.days is not None and (day in self.days or (self.last and day == length))
        by_week = self._has_weekday(calendar.weekday(year, month, day), day, length)
        if self.days is None:
            return by_week
        return by_day or (self.weekdays is not None and by_week)

    def _has_weekday(self, weekday: int, day: int, length: int) -> bool:
        if self.weekdays is None:
            return True
        sunday_is_0 = (weekday + 1) % 7
        if not self.nth:
            return sunday_is_0 in self.weekdays
        which = {(day + 6) // 7, 0 if day + 7 > length else -1}
        return any((sunday_is_0, n) in self.nth for n in which)

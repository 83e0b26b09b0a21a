"""An expression's text, read by croniter: the only place that knows it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from croniter import croniter

from ostinato.timing.fields import (
    DAY,
    FIELDS,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    YEAR,
    Field,
    Refused,
    highest,
    normal,
)

# Ours and not croniter's: given something to hash, its @daily is some time of the day.
ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
SHAPE: Final = "write 5 fields (minute hour day-of-month month day-of-week), 6 (second first), 7 (year last), or @daily"
# Whatever the order in which they were written.
CRONITERS_ORDER: Final = (MINUTE, HOUR, DAY, MONTH, WEEKDAY, SECOND, YEAR)
# A field that is not written: on the minute, in any year.
UNWRITTEN: Final = {SECOND.name: "0", YEAR.name: "*"}


@dataclass(frozen=True)
class Reading:
    """`parts` as written; by the name of a field its `texts` as croniter was given them, and the values `found`."""

    parts: tuple[str, ...]
    texts: Mapping[str, str]
    found: Mapping[str, Sequence[int | str]]
    # By weekday, which ones of the month, 'l' being the last. The stubs say that its keys are texts; they are numbers.
    nth: Mapping[Any, Collection[Any]]

    @property
    def last_day(self) -> bool:
        return "l" in self.found[DAY.name]

    def values(self, where: Field) -> tuple[int, ...]:
        found = self.found.get(where.name, [0])
        if found == ["*"]:
            return tuple(range(where.low, highest(where) + 1))
        return tuple(sorted(value for value in found if isinstance(value, int)))

    def restricted(self, where: Field) -> frozenset[int] | None:
        """None for '*' only: croniter now and then takes 1-31 for one, and then `1-31 * 1` would mean Mondays."""
        return None if self._text(where) == "*" else frozenset(self.values(where))

    def steps(self, where: Field) -> bool:
        """Whether it has a '*' or a '/', or all there is, and more than one value of it."""
        values, text = self.values(where), self._text(where)
        whole = len(values) == where.high - where.low + 1
        return len(values) > 1 and (whole or "*" in text or "/" in text)

    def _text(self, where: Field) -> str:
        return self.texts.get(where.name) or UNWRITTEN[where.name]


def read(text: str, key: str | None) -> Reading:
    parts = _spelled_out(text).split()
    if len(parts) not in FIELDS:
        raise Refused(f"it has {len(parts)} field{'' if len(parts) == 1 else 's'}; {SHAPE}")
    wheres = FIELDS[len(parts)]
    texts = {where.name: normal(where, part, key) for where, part in zip(wheres, parts, strict=True)}
    values, nth = croniter.expand(" ".join(texts.values()), second_at_beginning=True)
    found = {where.name: value for where, value in zip(CRONITERS_ORDER, values, strict=False)}
    return Reading(tuple(parts), texts, found, nth)


def _spelled_out(text: str) -> str:
    word = text.strip().lower()
    if not word.startswith("@"):
        return text
    if word not in ALIASES:
        every = "; for '@every 5m' write `every: 5m`" if word.startswith("@every") else ""
        raise Refused(f"{word[:20]} is not known; there are {', '.join(ALIASES)}{every}")
    return ALIASES[word]

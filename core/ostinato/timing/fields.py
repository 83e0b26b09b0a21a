"""The fields of a cron expression: what may stand in each, judged before croniter reads it.

croniter takes more than it says and calls every mistake "not acceptable". What passes here means one thing only.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ostinato.timing.spread import spread


class Refused(ValueError):
    """The rule that an expression breaks; whoever knows the whole expression makes an InvalidArgument of it."""


@dataclass(frozen=True)
class Field:
    name: str
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)
    # What else it takes, for the error that says so.
    also: str = ""

    @property
    def rule(self) -> str:
        names = f" or {', '.join(self.names)}" if self.names else ""
        return f"{self.name} takes {self.low}-{self.high}{names}, '*', lists, ranges, steps{self.also}"


# Not from `calendar`, which speaks the language that the process was set to.
MONTH_NAMES: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
WEEKDAY_NAMES: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS: Final = {name[:3].upper(): number for number, name in enumerate(MONTH_NAMES, 1)}
WEEKDAYS: Final = {name[:3].upper(): number for number, name in enumerate(WEEKDAY_NAMES)}

SECOND: Final = Field("second", 0, 59, also=" and H")
MINUTE: Final = Field("minute", 0, 59, also=" and H")
HOUR: Final = Field("hour", 0, 23, also=" and H")
DAY: Final = Field("day of month", 1, 31, also=", H and L")
MONTH: Final = Field("month", 1, 12, MONTHS, also=" and H")
WEEKDAY: Final = Field("day of week", 0, 7, WEEKDAYS, also=", H, 5#2 (second Friday) and L5 (last Friday)")
YEAR: Final = Field("year", 1970, 2099)

FIVE: Final = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)
FIELDS: Final = {5: FIVE, 6: (SECOND, *FIVE), 7: (SECOND, *FIVE, YEAR)}

STEPPED: Final = re.compile(r"([^/]+)/(\d+)", re.ASCII)
RANGE: Final = re.compile(r"(\w+)-(\w+)", re.ASCII)
HASHED: Final = re.compile(r"H(?:\((\d+)-(\d+)\))?", re.ASCII)
NTH: Final = re.compile(r"(\w+)#(\d+)", re.ASCII)
LAST: Final = re.compile(r"L([0-7]|[A-Z]{3})|([0-7]|[A-Z]{3})L", re.ASCII)
NAMELESS: Final = "H is hashed from the schedule's namespace/name, and none is given (on the command line: give --name)"
# In every month, so that a schedule's name does not cost it the months that have no 31st.
LAST_HASHED_DAY: Final = 28


def normal(where: Field, text: str, key: str | None) -> str:
    """The same field as croniter understands it, or `Refused` with what is wrong."""
    items = [_item(where, item, key) for item in text.upper().split(",")]
    if where is WEEKDAY and any("#" in item or "L" in item for item in items):
        _check_nth_alone(items)
    if "*" in items:
        return "*"
    return ",".join(items)


def _check_nth_alone(items: list[str]) -> None:
    if not all("#" in item or "L" in item for item in items):
        raise Refused("day of week mixes '#' or 'L' with plain days; make two schedules of it")


def _item(where: Field, item: str, key: str | None) -> str:
    if item == "?" and where in (DAY, WEEKDAY):
        return "*"
    if item == "L" and where is DAY:
        return "L"
    if where is WEEKDAY and (special := _nth(item) or _last(item)):
        return special
    stepped = STEPPED.fullmatch(item)
    base, step = (stepped[1], _step(where, stepped[2])) if stepped else (item, None)
    if where is not YEAR and (hashed := HASHED.fullmatch(base)):
        return _hashed(where, hashed, step, key)
    return _plain(where, item, base, step)


def _plain(where: Field, item: str, base: str, step: int | None) -> str:
    if base == "*":
        return f"*{_suffix(step)}"
    if bounds := RANGE.fullmatch(base):
        return _range(where, item, _value(where, bounds[1]), _value(where, bounds[2]), _suffix(step))
    start = _value(where, base)
    # Spelled out, since croniter before 7 reads 59/15 as every 15 minutes.
    return _range(where, item, start, highest(where), _suffix(step)) if step else str(start)


def _suffix(step: int | None) -> str:
    return f"/{step}" if step and step > 1 else ""


def highest(where: Field) -> int:
    return 6 if where is WEEKDAY else where.high


def _range(where: Field, item: str, low: int, high: int, suffix: str) -> str:
    if where is WEEKDAY and low == 7:
        low, high = 0, high % 7
    if low == high:  # croniter reads 5-5 as the whole field
        return str(low)
    if low > high and (suffix or where is YEAR):
        raise Refused(f"{where.name} {item} goes backwards; write two ranges, such as a-{highest(where)},{where.low}-b")
    return f"{low}-{high}{suffix}"


def _hashed(where: Field, hashed: re.Match[str], step: int | None, key: str | None) -> str:
    """Not croniter's own H: its `H H * * *` knows 240 of the 1440 minutes of a day."""
    low, high = _hashed_bounds(where, hashed)
    if key is None:
        raise Refused(NAMELESS)
    room = high - low + 1
    start = low + spread(where.name, key) % min(step or room, room)
    return _range(where, hashed[0], start, high, _suffix(step)) if step else str(start)


def _hashed_bounds(where: Field, hashed: re.Match[str]) -> tuple[int, int]:
    most = highest(where)
    if hashed[1] is None:
        return where.low, LAST_HASHED_DAY if where is DAY else most
    low, high = _value(where, hashed[1]), _value(where, hashed[2])
    if low >= high:
        raise Refused(f"{where.name} {hashed[0]} must go from a lower to a higher number")
    if high > most:
        raise Refused(f"{where.name} {high} is not in {where.low}-{most}, which is what H takes there")
    return low, high


def _step(where: Field, digits: str) -> int:
    most = where.high - where.low
    if not 1 <= int(digits) <= most:
        longer = "; for longer intervals use `every`" if where in (SECOND, MINUTE, HOUR) else ""
        raise Refused(f"{where.name} has a step of {digits}, it must be from 1 to {most}{longer}")
    return int(digits)


def _nth(item: str) -> str | None:
    if not (nth := NTH.fullmatch(item)):
        return None
    if not 1 <= int(nth[2]) <= 5:
        raise Refused(f"day of week {item}: a month has from 1 to 5 of a weekday")
    return f"{_value(WEEKDAY, nth[1]) % 7}#{int(nth[2])}"


def _last(item: str) -> str | None:
    last = LAST.fullmatch(item)
    return f"L{_value(WEEKDAY, last[1] or last[2]) % 7}" if last else None


def _value(where: Field, text: str) -> int:
    if text in where.names:
        return where.names[text]
    if not (text.isascii() and text.isdigit()):
        raise Refused(f"{where.name} {text!r} is not understood; {where.rule}")
    if not where.low <= int(text) <= where.high:
        raise Refused(f"{where.name} {text} is not in {where.low}-{where.high}; {where.rule}")
    return int(text)

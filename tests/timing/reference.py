"""What is due, the slow and plain way: look at the clock once a minute (or second) and compare field by field.

It shares no code with ostinato.timing, and knows what an expression means because it made it up itself.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from zoneinfo import ZoneInfo


@dataclass(frozen=True)
class Made:
    """One field: its text, what it stands for, and whether it goes on by steps."""

    text: str
    values: frozenset[int]
    steps: bool


def make_field(random: Random, low: int, high: int) -> Made:
    a, b = sorted(random.sample(range(low, high + 1), 2))
    step = random.randint(2, min(20, high - low))
    kind = random.choice(["one", "list", "range", "backwards", "star", "all", "every", "part", "from"])
    match kind:
        case "one":
            return Made(str(a), frozenset([a]), False)
        case "list":
            return Made(f"{b},{a}", frozenset([a, b]), False)
        case "range":
            return Made(f"{a}-{b}", frozenset(range(a, b + 1)), (a, b) == (low, high))
        case "backwards":
            values = frozenset([*range(b, high + 1), *range(low, a + 1)])
            return Made(f"{b}-{a}", values, len(values) == high - low + 1)
        case "star":
            return Made("*", frozenset(range(low, high + 1)), True)
        case "all":
            return Made(f"{low}-{high}", frozenset(range(low, high + 1)), True)
        case "every":
            text, values = f"*/{step}", frozenset(range(low, high + 1, step))
        case "part":
            text, values = f"{a}-{b}/{step}", frozenset(range(a, b + 1, step))
        case _:
            text, values = f"{a}/{step}", frozenset(range(a, high + 1, step))
    return Made(text, values, len(values) > 1)


@dataclass(frozen=True)
class Expression:
    second: Made | None
    minute: Made
    hour: Made
    day: Made
    weekday: Made

    @property
    def text(self) -> str:
        first = [self.second.text] if self.second else []
        return " ".join([*first, self.minute.text, self.hour.text, self.day.text, "*", self.weekday.text])

    @property
    def elapsed(self) -> bool:
        steps = self.minute.steps or (self.second is not None and self.second.steps)
        return steps or len(self.hour.values) == 24

    def matches(self, wall: datetime) -> bool:
        if wall.minute not in self.minute.values or wall.hour not in self.hour.values:
            return False
        if wall.second not in (self.second.values if self.second else {0}):
            return False
        day = wall.day in self.day.values
        weekday = wall.isoweekday() % 7 in self.weekday.values
        if "*" in (self.day.text, self.weekday.text):
            return day and weekday
        return day or weekday


def make_expression(random: Random, *, seconds: bool) -> Expression:
    """Most of them on every day, or nothing would happen in the few days of a case."""
    any_day, any_weekday = make_star(1, 31), make_star(0, 6)
    return Expression(
        second=make_field(random, 0, 59) if seconds else None,
        minute=make_field(random, 0, 59),
        hour=make_field(random, 0, 23),
        day=make_field(random, 1, 31) if random.random() < 0.2 else any_day,
        weekday=make_field(random, 0, 6) if random.random() < 0.2 else any_weekday,
    )


def make_star(low: int, high: int) -> Made:
    return Made("*", frozenset(range(low, high + 1)), True)


@dataclass(frozen=True)
class Seen:
    """What the clock showed at an instant, how often it has shown that and will again, and what it left out before."""

    at: datetime
    wall: datetime
    is_first: bool
    is_last: bool
    left_out: tuple[datetime, ...]


@cache
def watch(zone: str, start: datetime, end: datetime, pace: timedelta) -> list[Seen]:
    place, at, rows = ZoneInfo(zone), start, []
    while at < end:
        rows.append((at, at.astimezone(place).replace(tzinfo=None)))
        at += pace
    shown = defaultdict(list)
    for at, wall in rows:
        shown[wall].append(at)
    before = [rows[0][1] - pace, *(wall for _, wall in rows)]
    return [
        Seen(at, wall, shown[wall][0] == at, shown[wall][-1] == at, tuple(between(previous, wall, pace)))
        for (at, wall), previous in zip(rows, before, strict=False)
    ]


def between(previous: datetime, wall: datetime, pace: timedelta) -> Iterable[datetime]:
    missing = previous + pace
    while missing < wall:
        yield missing
        missing += pace


def due(expression: Expression, seen: list[Seen], gap: str, overlap: str) -> list[datetime]:
    return [moment.at for moment in seen if is_due(expression, moment, gap, overlap)]


def is_due(expression: Expression, moment: Seen, gap: str, overlap: str) -> bool:
    if expression.matches(moment.wall):
        counts = {"First": moment.is_first, "Second": moment.is_last, "Both": True}
        if expression.elapsed or counts[overlap]:
            return True
    after_gap = gap == "RunAfter" and not expression.elapsed
    return after_gap and any(expression.matches(missing) for missing in moment.left_out)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)

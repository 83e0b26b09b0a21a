"""A cron expression in words."""

import re
from collections.abc import Sequence
from typing import Final

from ostinato.timing.cron import Cron
from ostinato.timing.fields import MONTH_NAMES, MONTHS, WEEKDAY_NAMES, WEEKDAYS

BY_MONTH: Final = dict(enumerate(MONTH_NAMES, 1))
BY_WEEKDAY: Final = dict(enumerate((*WEEKDAY_NAMES, "Sunday")))
ORDINALS: Final = ("last", "first", "second", "third", "fourth", "fifth")
ITEM: Final = re.compile(r"(\w+)(?:-(\w+))?(?:/(\d+))?", re.ASCII)
FEW: Final = 4


def in_words(cron: Cron) -> str:
    """'at 02:30, on Monday to Friday'"""
    *clock, day, month, weekday = cron.fields[:-1] if len(cron.fields) == 7 else cron.fields
    parts = [
        _time(cron, clock),
        _days(day, weekday),
        "" if month in "*?" else f"in {_listed(month, MONTHS, BY_MONTH)}",
    ]
    year = cron.fields[6] if len(cron.fields) == 7 else "*"
    parts.append("" if year == "*" else f"in {_listed(year)}")
    return ", ".join(part for part in parts if part)


def _time(cron: Cron, clock: Sequence[str]) -> str:
    if times := _few_times(cron):
        return f"at {_and(times)}"
    seconds = [] if len(clock) == 2 or clock[0] == "0" else [_unit("second", clock[0], cron.seconds)]
    minutes = [_unit("minute", clock[-2], cron.minutes)]
    hours = [] if clock[-1] == "*" else [_unit("hour", clock[-1], cron.hours)]
    if seconds and clock[-2] == "*":
        minutes = []
    return " of ".join([*seconds, *minutes, *hours])


def _few_times(cron: Cron) -> list[str]:
    if len(cron.hours) * len(cron.minutes) * len(cron.seconds) > FEW:
        return []
    seconds = cron.seconds != (0,)
    return [
        f"{hour:02}:{minute:02}" + (f":{second:02}" if seconds else "")
        for hour in cron.hours
        for minute in cron.minutes
        for second in cron.seconds
    ]


def _unit(name: str, text: str, values: Sequence[int]) -> str:
    """What H came to is shown as the numbers, since nobody can know them from the text."""
    if text == "*":
        return f"every {name}"
    if text.startswith("*/") and text[2:].isdigit():
        return f"every {name}" if text == "*/1" else f"every {_nth(int(text[2:]))} {name}"
    if "H" in text.upper():
        text = ",".join(map(str, values))
    return f"{name} {_listed(text)}"


def _nth(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _days(day: str, weekday: str) -> str:
    of_week = "" if weekday in "*?" else f"on {_and([_weekday(item) for item in weekday.upper().split(',')])}"
    of_month = "" if day in "*?" else f"on {_and([_day(item) for item in day.upper().split(',')])}"
    return f"{of_month} and also {of_week}" if of_month and of_week else of_month or of_week


def _day(item: str) -> str:
    if item == "L":
        return "the last day of the month"
    if item.startswith("*/"):
        return f"every {_nth(int(item[2:]))} day of the month from the 1st"
    return f"day {_listed(item)} of the month"


def _weekday(item: str) -> str:
    if "#" in item:
        day, _, nth = item.partition("#")
        return f"the {ORDINALS[int(nth)]} {_named(day, WEEKDAYS, BY_WEEKDAY)} of the month"
    if "L" in item:
        return f"the last {_named(item.replace('L', '', 1), WEEKDAYS, BY_WEEKDAY)} of the month"
    return _listed(item, WEEKDAYS, BY_WEEKDAY)


def _listed(text: str, numbers: dict[str, int] | None = None, names: dict[int, str] | None = None) -> str:
    return _and([_item(item, numbers or {}, names or {}) for item in text.upper().split(",")])


def _item(item: str, numbers: dict[str, int], names: dict[int, str]) -> str:
    if item.startswith("*"):
        return "all" if item == "*" else f"every {_nth(int(item[2:]))}"
    if not (found := ITEM.fullmatch(item)) or item.startswith("H"):
        return item
    low, high, step = found.groups()
    end = f" to {_named(high, numbers, names)}" if high else " on" if step else ""
    return f"{_named(low, numbers, names)}{end}" + (f" in steps of {step}" if step else "")


def _named(text: str, numbers: dict[str, int], names: dict[int, str]) -> str:
    number = numbers.get(text, int(text) if text.isdigit() else -1)
    return names.get(number, text)


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

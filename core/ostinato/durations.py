"""Lengths of time as people write them: "5m", "1h30m", "250ms", seconds, or a timedelta. No I/O."""

import math
import re
from datetime import timedelta
from typing import Final

from ostinato.errors import InvalidArgument

Duration = timedelta | float | str

RULE: Final = "write it as '90s', '5m', '1h30m', '7d', a number of seconds, or a timedelta"
UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)", re.ASCII)
WHOLE: Final = re.compile(rf"(?:{PART.pattern})+", re.ASCII)
LONGEST: Final = timedelta(days=36_500)


def parse_duration(argument: str, value: Duration) -> timedelta:
    """The timedelta that `value` means; `argument` is what the error calls it."""
    try:
        duration = _parse(value)
    except OverflowError:
        duration = None
    if duration is None:
        raise InvalidArgument(argument, value, RULE)
    if not timedelta(0) <= duration <= LONGEST:
        raise InvalidArgument(argument, value, "it must be from 0 to 100 years")
    return duration


def _parse(value: Duration) -> timedelta | None:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return timedelta(seconds=value) if math.isfinite(value) else None
    if isinstance(value, str) and WHOLE.fullmatch(value.strip()):
        return sum((float(number) * UNITS[unit] for number, unit in PART.findall(value)), timedelta(0))
    return None


def format_duration(duration: timedelta) -> str:
    """The two largest units that say it: '1h30m', '45s', '3d2h'."""
    if duration < timedelta(seconds=1):
        return f"{int(duration / UNITS['ms'])}ms" if duration > timedelta(0) else "0s"
    parts: list[str] = []
    rest = duration
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(rest, UNITS[unit])
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
    return "".join(parts[:2])

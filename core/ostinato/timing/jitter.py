"""A schedule's own small delay, so that those of midnight do not all come at midnight."""

from datetime import timedelta
from typing import Final

from ostinato.durations import Duration, parse_duration
from ostinato.errors import InvalidArgument
from ostinato.timing.spread import spread

MILLISECOND: Final = timedelta(milliseconds=1)
LONGEST: Final = timedelta(days=1)


def jitter_offset(jitter: Duration, key: str | None) -> timedelta:
    """From 0 until before `jitter`, in milliseconds: the same for the same key, on every machine.

    One delay for all instants of a schedule: they keep their order and their distances.
    """
    length = parse_duration("jitter", jitter)
    if length > LONGEST or length % MILLISECOND:
        raise InvalidArgument("jitter", jitter, "it must be whole milliseconds, at most a day")
    if not length:
        return length
    if key is None:
        raise InvalidArgument("jitter", jitter, "it is hashed from the schedule's namespace/name, and none is given")
    return spread("jitter", key) % (length // MILLISECOND) * MILLISECOND

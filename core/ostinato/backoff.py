"""How long to wait before the next attempt. No I/O; chance comes in as an argument."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Final, Protocol

from ostinato.durations import Duration, parse_duration
from ostinato.errors import InvalidArgument

CHANCE: Final = Random()


class Backoff(Protocol):
    def delay(self, attempt: int, chance: Random = CHANCE) -> timedelta:
        """After the failure of this attempt; the first is 1."""


@dataclass(frozen=True)
class Exponential:
    """`initial`, doubled with each attempt, at most `max`, more or less by a `jitter` of it."""

    initial: Duration = "2s"
    max: Duration = "1024s"
    factor: float = 2.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        _check_jitter(self.jitter)
        if not 1 <= self.factor <= 100:
            raise InvalidArgument("factor", self.factor, "it must be from 1 to 100")
        _check_order(self.initial, self.max)

    def delay(self, attempt: int, chance: Random = CHANCE) -> timedelta:
        first, most = parse_duration("initial", self.initial), parse_duration("max", self.max)
        # Of so many doublings the largest is in reach of any limit, and not of the end of numbers.
        grown = first.total_seconds() * self.factor ** min(attempt - 1, 64)
        return _jittered(min(grown, most.total_seconds()), self.jitter, chance)


@dataclass(frozen=True)
class Decorrelated:
    """Anything from `initial` to three times as much with each attempt, at most `max`: for crowds that must scatter."""

    initial: Duration = "2s"
    max: Duration = "1024s"

    def __post_init__(self) -> None:
        _check_order(self.initial, self.max)

    def delay(self, attempt: int, chance: Random = CHANCE) -> timedelta:
        first = parse_duration("initial", self.initial).total_seconds()
        most = parse_duration("max", self.max).total_seconds()
        return timedelta(seconds=chance.uniform(first, min(most, first * 3.0 ** min(attempt, 64))))


@dataclass(frozen=True)
class Fixed:
    """Always the same."""

    wait: Duration
    jitter: float = 0.0

    def __post_init__(self) -> None:
        _check_jitter(self.jitter)
        parse_duration("wait", self.wait)

    def delay(self, attempt: int, chance: Random = CHANCE) -> timedelta:
        return _jittered(parse_duration("wait", self.wait).total_seconds(), self.jitter, chance)


@dataclass(frozen=True)
class Steps:
    """One wait after each attempt; after the last one stays."""

    waits: Sequence[Duration]
    jitter: float = 0.0

    def __post_init__(self) -> None:
        _check_jitter(self.jitter)
        if not self.waits:
            raise InvalidArgument("waits", self.waits, "it must hold at least one wait")
        for wait in self.waits:
            parse_duration("waits", wait)

    def delay(self, attempt: int, chance: Random = CHANCE) -> timedelta:
        wait = self.waits[min(attempt, len(self.waits)) - 1]
        return _jittered(parse_duration("waits", wait).total_seconds(), self.jitter, chance)


def _jittered(seconds: float, jitter: float, chance: Random) -> timedelta:
    return timedelta(seconds=seconds * chance.uniform(1 - jitter, 1 + jitter))


def _check_jitter(jitter: float) -> None:
    if not 0 <= jitter <= 1:
        raise InvalidArgument("jitter", jitter, "it must be from 0 to 1")


def _check_order(initial: Duration, most: Duration) -> None:
    if parse_duration("initial", initial) > parse_duration("max", most):
        raise InvalidArgument("initial", initial, f"it must not be more than max, {most}")


DEFAULT: Final = Exponential()


def read_backoff(value: "Backoff | Duration | Sequence[Duration] | None") -> Backoff:
    """A policy as people give it: one of the above, a single wait, or a list of waits."""
    if value is None:
        return DEFAULT
    if hasattr(value, "delay"):
        return value
    if isinstance(value, list | tuple):
        return Steps(tuple(value))
    return Fixed(value)  # type: ignore[arg-type]

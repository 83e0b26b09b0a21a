"""When a schedule is due: everything of its `schedule:` block, as one value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Final, Protocol, TypeVar
from zoneinfo import ZoneInfo

from ostinato.durations import Duration
from ostinato.errors import InvalidArgument
from ostinato.timing.clockwork import Clockwork, Gap, Overlap
from ostinato.timing.cron import Cron
from ostinato.timing.exclusion import Exclusion
from ostinato.timing.interval import EPOCH, Interval
from ostinato.timing.jitter import jitter_offset
from ostinato.timing.zones import find_zone, on_clock

Choice = TypeVar("Choice", bound=StrEnum)
TICK: Final = timedelta(microseconds=1)


class Cadence(Protocol):
    def next_after(self, instant: datetime) -> datetime | None:
        """The first instant later than this one, in UTC."""


@dataclass(frozen=True)
class Due:
    """One instant of a schedule. `excluded` is the exclusion that covers it, as it was written."""

    at: datetime
    excluded: str | None = None


@dataclass(frozen=True)
class Timing:
    """All instants are aware and in UTC.

    notBefore, notAfter (both inclusive) and exclusions judge the instant that the cadence names; `delay`, the jitter,
    is added to what they let pass. So a run may come a jitter later than notAfter, and none is lost to it.
    """

    cadence: Cadence
    zone: ZoneInfo
    not_before: datetime | None = None
    not_after: datetime | None = None
    exclude: tuple[Exclusion, ...] = ()
    delay: timedelta = timedelta(0)

    def next_after(self, instant: datetime) -> datetime | None:
        """The first instant later than this one that is not excluded."""
        named = self._named_after(_utc(instant) - self.delay)
        while named is not None and (exclusion := self._exclusion(named)):
            end = exclusion.ends(self.zone).replace(tzinfo=UTC)
            named = self._named_after(max(named, end - TICK))
        return None if named is None else named + self.delay

    def upcoming(self, after: datetime, count: int) -> list[Due]:
        """The next ones, those that are excluded among them; fewer if there are no more."""
        return list(islice(self._all_after(_utc(after)), count))

    def _all_after(self, instant: datetime) -> Iterator[Due]:
        named = self._named_after(instant - self.delay)
        while named is not None:
            exclusion = self._exclusion(named)
            yield Due(named + self.delay, exclusion.text if exclusion else None)
            named = self._named_after(named)

    def _named_after(self, instant: datetime) -> datetime | None:
        if self.not_before is not None and instant < self.not_before:
            instant = self.not_before - TICK
        named = self.cadence.next_after(instant)
        if named is None or (self.not_after is not None and named > self.not_after):
            return None
        return named

    def _exclusion(self, named: datetime) -> Exclusion | None:
        if not self.exclude:
            return None
        wall = on_clock(self.zone, named)
        return next((exclusion for exclusion in self.exclude if exclusion.covers(wall)), None)


def read_timing(
    *,
    cron: str | None = None,
    every: Duration | None = None,
    anchor: datetime | str | None = None,
    time_zone: str = "UTC",
    gap: str = Gap.RUN_AFTER,
    overlap: str = Overlap.FIRST,
    jitter: Duration = 0,
    not_before: datetime | str | None = None,
    not_after: datetime | str | None = None,
    exclude: Sequence[str | date] = (),
    key: str | None = None,
) -> Timing:
    """From what people write. `key` is the schedule's namespace/name, which `H` and jitter are hashed from.

    An InvalidArgument names what was wrong as the YAML does: 'cron', 'timeZone', 'dst.gap', 'exclude[0]'.
    """
    zone = find_zone(time_zone)
    start, end = _instant("notBefore", not_before), _instant("notAfter", not_after)
    if start and end and end < start:
        raise InvalidArgument("notAfter", not_after, f"it must not be before notBefore, {not_before}")
    policy = _choice("dst.gap", gap, Gap), _choice("dst.overlap", overlap, Overlap)
    return Timing(
        cadence=_cadence(cron, every, anchor, key, zone, policy),
        zone=zone,
        not_before=start,
        not_after=end,
        exclude=tuple(Exclusion.parse(f"exclude[{place}]", value) for place, value in enumerate(exclude)),
        delay=jitter_offset(jitter, key),
    )


def _cadence(
    cron: str | None,
    every: Duration | None,
    anchor: datetime | str | None,
    key: str | None,
    zone: ZoneInfo,
    policy: tuple[Gap, Overlap],
) -> Cadence:
    if (cron is None) == (every is None):
        raise InvalidArgument("cron", cron, "give either `cron` or `every`, not both and not neither")
    if every is not None:
        return Interval.parse(every, _instant("anchor", anchor) or EPOCH)
    if anchor is not None:
        raise InvalidArgument("anchor", anchor, "it goes with `every` only")
    assert cron is not None
    return Clockwork(Cron.parse(cron, key), zone, *policy)


def _instant(argument: str, value: datetime | str | None) -> datetime | None:
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise InvalidArgument(argument, value, "write it as 2026-01-31T09:00:00Z") from None
    return _utc(found, argument)


def _utc(instant: datetime, argument: str = "instant") -> datetime:
    if not isinstance(instant, datetime) or instant.tzinfo is None:
        raise InvalidArgument(argument, instant, "it must say its zone: 2026-01-31T09:00:00Z")
    return instant.astimezone(UTC)


def _choice(argument: str, value: str, kind: type[Choice]) -> Choice:
    try:
        return kind(value)
    except ValueError:
        raise InvalidArgument(argument, value, f"it must be {' or '.join(kind)}") from None

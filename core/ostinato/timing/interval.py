"""A fixed interval: `every: 5m`. Counted from an anchor, so that no restart shifts it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from ostinato.durations import Duration, parse_duration
from ostinato.errors import InvalidArgument

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
RULE: Final = (
    "it must be whole seconds, at least one, written as '30s', '5m', '1h30m' or '7d'; "
    "months and years have no fixed length: use `cron` for them"
)


@dataclass(frozen=True)
class Interval:
    """Due at the anchor, and at whole multiples of `every` before and after it, whatever the clocks of a place do."""

    every: timedelta
    anchor: datetime = EPOCH

    @classmethod
    def parse(cls, every: Duration, anchor: datetime = EPOCH) -> "Interval":
        try:
            length = parse_duration("every", every)
        except InvalidArgument as error:
            raise InvalidArgument("every", error.value, RULE) from None
        if length < SECOND or length % SECOND:
            raise InvalidArgument("every", every, RULE)
        return cls(length, anchor)

    def next_after(self, instant: datetime) -> datetime | None:
        passed = (instant - self.anchor) // self.every
        try:
            return self.anchor + (passed + 1) * self.every
        except OverflowError:
            return None

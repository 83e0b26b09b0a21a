"""How an attempt ended, ready to be recorded. No I/O."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from ostinato.payload import Json


@dataclass(frozen=True, slots=True)
class Completed:
    output: Json | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """`delay` is what the handler asked for; None is the backoff of its type. `permanent`: do not try again."""

    code: str
    message: str
    delay: timedelta | None = None
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Snoozed:
    delay: timedelta | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Stopped:
    """It stopped, as a person had asked."""

    message: str | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """The worker gives it back unfinished; no attempt is spent."""


@dataclass(frozen=True, slots=True)
class Committed:
    """It was completed in its own transaction: nothing is left to record."""

    output: Json | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """Somebody else may have it by now: nothing may be recorded."""


Verdict = Completed | Failed | Snoozed | Stopped | Released | Committed | Lost
DONE = Completed()

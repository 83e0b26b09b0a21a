"""What became of an attempt, as a value. No I/O."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ostinato.failures import Code, PermanentError, TransientError
from ostinato.lifecycle import State
from ostinato.newjob import NewJob


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`state` is the one in which the job would be now: completed, retrying, dead_lettered, or pending if it snoozes.

    `delay` is the time until it would run again. `raised` is what the handler raised, `code` and `message` what would
    be stored of it.
    """

    state: State
    output: Any = None
    code: str | None = None
    message: str | None = None
    delay: timedelta | None = None
    raised: BaseException | None = None
    progress: list[Any] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    enqueued: list[NewJob] = field(default_factory=list)

    def result(self) -> Any:
        """The output; if the attempt did not complete, what the handler raised is raised."""
        if self.state is State.COMPLETED:
            return self.output
        if isinstance(self.raised, Exception):
            raise self.raised
        kind = PermanentError if self.state is State.DEAD_LETTERED else TransientError
        raise kind(self.message or f"it is {self.state}", code=self.code or Code.CANCELLED)

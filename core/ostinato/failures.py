"""How an attempt can end other than by returning. Handlers raise these; anything else they raise is transient.

JobError                     has a code, by which people find it again
├── TransientError           try again: after the type's backoff, or after `retry_after`
└── PermanentError           trying again cannot help: a dead letter at once
Snooze                       no failure: call me again later, and spend no attempt
"""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Final

from ostinato.durations import Duration, parse_duration
from ostinato.errors import InvalidArgument
from ostinato.newjob import FIRST, LAST

LONGEST_WAIT: Final = timedelta(days=366)


class Code(StrEnum):
    """The codes that are ours; a handler's own may be any name."""

    HANDLER_ERROR = "HANDLER_ERROR"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    PAYLOAD_INVALID = "PAYLOAD_INVALID"
    OUTPUT_INVALID = "OUTPUT_INVALID"
    NO_HANDLER = "NO_HANDLER"
    LEASE_EXPIRED = "LEASE_EXPIRED"
    POISON = "POISON"
    COMMIT_FAILED = "COMMIT_FAILED"
    PROCESS_DIED = "PROCESS_DIED"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    RATE_LIMITED = "RATE_LIMITED"
    UPSTREAM_5XX = "UPSTREAM_5XX"
    NETWORK_ERROR = "NETWORK_ERROR"
    AUTHENTICATION_FAILED = "AUTHENTICATION_FAILED"
    NOT_FOUND = "NOT_FOUND"
    REQUEST_REFUSED = "REQUEST_REFUSED"


class JobError(Exception):
    # Of the class too: one derived from it need not call our __init__.
    code: str = Code.HANDLER_ERROR.value

    def __init__(self, message: str = "", *, code: str = Code.HANDLER_ERROR) -> None:
        super().__init__(message)
        self.code = str(code)


class TransientError(JobError):
    """It may work later."""

    retry_after: timedelta | None = None

    def __init__(
        self, message: str = "", *, code: str = Code.HANDLER_ERROR, retry_after: Duration | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.retry_after = None if retry_after is None else parse_wait("retry_after", retry_after)


class PermanentError(JobError):
    """It will not work, however often it is tried."""


class Snooze(Exception):
    """Until a time with a zone, or for a length of time: Snooze("5m")."""

    until: datetime | None = None
    delay: timedelta | None = None

    def __init__(self, until: datetime | Duration) -> None:
        super().__init__(f"until {until}" if isinstance(until, datetime) else f"for {until}")
        if isinstance(until, datetime) and until.tzinfo is None:
            raise InvalidArgument("until", until, "it must have a time zone, such as datetime.now(UTC)")
        if isinstance(until, datetime) and not FIRST <= until < LAST:
            raise InvalidArgument("until", until, "it must be from 1970 to 9998")
        self.until = until if isinstance(until, datetime) else None
        self.delay = None if isinstance(until, datetime) else parse_wait("until", until)


def parse_wait(argument: str, value: Duration) -> timedelta:
    """What was computed from clocks may be over by now: that is no reason to refuse it."""
    if isinstance(value, int | float | timedelta):
        value = max(value, type(value)(0))
    return parse_duration(argument, value)


def error_for_status(status: int, message: str = "", *, retry_after: str | None = None) -> JobError:
    """What an HTTP answer of 400 and above means for a job; `retry_after` is that header, if there is one."""
    text = message or f"HTTP {status}"
    wait = parse_retry_after(retry_after)
    if status == 429:
        return TransientError(text, code=Code.RATE_LIMITED, retry_after=wait)
    if status in (408, 425):
        return TransientError(text, code=Code.TIMEOUT, retry_after=wait)
    if status >= 500:
        return TransientError(text, code=Code.UPSTREAM_5XX, retry_after=wait)
    if status in (401, 403):
        return PermanentError(text, code=Code.AUTHENTICATION_FAILED)
    if status in (404, 410):
        return PermanentError(text, code=Code.NOT_FOUND)
    return PermanentError(text, code=Code.REQUEST_REFUSED)


def parse_retry_after(header: str | None, now: datetime | None = None) -> timedelta | None:
    """Seconds, or a date; what is neither is as if it were not there."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=min(int(text[:10]), 10**9)), LONGEST_WAIT)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(max(at - (now or datetime.now(UTC)), timedelta(0)), LONGEST_WAIT)

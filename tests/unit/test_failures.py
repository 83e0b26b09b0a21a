"""What handlers raise, and what an HTTP answer means."""

from datetime import UTC, datetime, timedelta

import pytest

from ostinato import InvalidArgument, PermanentError, Snooze, TransientError, error_for_status
from ostinato.failures import parse_retry_after

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, PermanentError, "REQUEST_REFUSED"),
        (401, PermanentError, "AUTHENTICATION_FAILED"),
        (403, PermanentError, "AUTHENTICATION_FAILED"),
        (404, PermanentError, "NOT_FOUND"),
        (408, TransientError, "TIMEOUT"),
        (410, PermanentError, "NOT_FOUND"),
        (422, PermanentError, "REQUEST_REFUSED"),
        (429, TransientError, "RATE_LIMITED"),
        (500, TransientError, "UPSTREAM_5XX"),
        (503, TransientError, "UPSTREAM_5XX"),
    ],
)
def test_an_http_status_says_whether_to_try_again(status: int, kind: type, code: str) -> None:
    error = error_for_status(status, "it said no", retry_after="7")

    assert type(error) is kind
    assert error.code == code
    assert str(error) == "it said no"
    assert getattr(error, "retry_after", None) == (timedelta(seconds=7) if kind is TransientError else None)


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("120", timedelta(minutes=2)),
        ("Sat, 31 Jan 2026 12:01:00 GMT", timedelta(minutes=1)),
        ("Sat, 31 Jan 2026 11:00:00 GMT", timedelta(0)),
        ("9" * 4000, timedelta(days=366)),
        ("soon", None),
        ("-5", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date_or_nothing(header: str | None, wait: timedelta | None) -> None:
    assert parse_retry_after(header, NOON) == wait


def test_snooze_is_until_a_time_or_for_a_while() -> None:
    assert (Snooze(NOON).until, Snooze(NOON).delay) == (NOON, None)
    assert (Snooze("5m").until, Snooze("5m").delay) == (None, timedelta(minutes=5))

    with pytest.raises(InvalidArgument, match="it must have a time zone"):
        Snooze(datetime(2026, 1, 31))


def test_a_class_derived_from_ours_need_not_call_its_init() -> None:
    class Refused(TransientError):
        def __init__(self, reason: str) -> None:
            self.reason = reason

    class Later(Snooze):
        def __init__(self) -> None: ...

    refused, later = Refused("busy"), Later()

    assert (str(refused), refused.code, refused.retry_after) == ("busy", "HANDLER_ERROR", None)
    assert (later.until, later.delay) == (None, None)

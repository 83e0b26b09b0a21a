"""Random expressions, zones and starts, compared with looking at a clock all day long."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from ostinato.timing import read_timing
from tests.timing.reference import due, make_expression, utc, watch

# Where a clock was changed, and when (UTC).
CHANGES = [
    ("Europe/Berlin", utc("2026-03-29T01:00")),
    ("Europe/Berlin", utc("2026-10-25T01:00")),
    ("America/New_York", utc("2026-03-08T07:00")),
    ("America/New_York", utc("2026-11-01T06:00")),
    ("Australia/Lord_Howe", utc("2026-04-04T15:00")),
    ("Australia/Lord_Howe", utc("2026-10-03T15:30")),
    ("Pacific/Apia", utc("2011-12-30T10:00")),  # skipped a day
    ("Pacific/Kwajalein", utc("1993-08-21T12:00")),  # skipped a day
    ("America/Havana", utc("2025-03-09T05:00")),  # at midnight
    ("America/Havana", utc("2025-11-02T05:00")),
    ("Antarctica/Troll", utc("2026-03-29T01:00")),  # by two hours
    ("Antarctica/Troll", utc("2026-10-25T01:00")),
    ("Africa/Casablanca", utc("2025-02-23T02:00")),  # back, for Ramadan
    ("Asia/Pyongyang", utc("2018-05-04T15:00")),  # half an hour for good
    ("America/Caracas", utc("2007-12-09T07:00")),  # half an hour back for good, in a zone without DST
    ("Asia/Manila", utc("1978-03-21T16:00")),
    ("Africa/Sao_Tome", utc("2019-01-01T01:00")),  # at new year
    ("America/Managua", utc("1997-01-01T05:00")),
    ("America/Sao_Paulo", utc("2017-12-31T12:00")),  # nothing happens but a new year
    ("UTC", utc("2024-02-28T12:00")),
]
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
# A day that is skipped holds too many seconds to look at each.
SHORT = [(zone, at) for zone, at in CHANGES if zone not in ("Pacific/Apia", "Pacific/Kwajalein")]


def check(case: int, *, pace: timedelta, room: timedelta) -> None:
    random = Random(f"{case} {pace}")
    zone, change = random.choice(CHANGES if pace == MINUTE else SHORT)
    expression = make_expression(random, seconds=pace == SECOND)
    gap, overlap = random.choice(["RunAfter", "Skip"]), random.choice(["First", "Second", "Both"])
    seen = watch(zone, change - room, change + room, pace)
    start = change - room + random.random() * 1.4 * room
    expected = [at for at in due(expression, seen, gap, overlap) if at > start][:200]

    timing = read_timing(cron=expression.text, time_zone=zone, gap=gap, overlap=overlap)
    found = [due.at for due in timing.upcoming(start, len(expected) + 1)]

    assert found[: len(expected)] == expected, f"{case}: {expression.text!r} in {zone} from {start}, {gap}, {overlap}"
    if len(expected) < 200 and len(found) > len(expected):
        assert found[-1] >= change + room, f"{case}: {expression.text!r} in {zone}: {found[-1]} is not due"


@pytest.mark.parametrize("hundred", range(14))
def test_minutes_are_as_the_reference_says(hundred: int) -> None:
    for case in range(100 * hundred, 100 * hundred + 100):
        check(case, pace=MINUTE, room=timedelta(hours=60))


@pytest.mark.parametrize("hundred", range(6))
def test_seconds_are_as_the_reference_says(hundred: int) -> None:
    for case in range(100 * hundred, 100 * hundred + 100):
        check(case, pace=SECOND, room=timedelta(hours=4))


def test_the_reference_sees_the_changes_it_is_meant_to_see() -> None:
    """A case far from a change would prove nothing."""
    quiet = {("America/Sao_Paulo", 2017), ("UTC", 2024), ("Asia/Manila", 1978)}

    for zone, change in CHANGES:
        seen = watch(zone, change - timedelta(hours=60), change + timedelta(hours=60), MINUTE)
        eventful = any(moment.left_out or not moment.is_first for moment in seen)
        assert eventful == ((zone, change.year) not in quiet), (zone, change)


def test_days_of_months_and_years_are_as_a_calendar_says() -> None:
    """Sparse ones: L, #, months, years, by walking days."""
    cases: list[tuple[str, Callable[[datetime], bool]]] = [
        ("0 0 L * *", lambda day: (day + timedelta(days=1)).day == 1),
        ("0 0 L,15 * *", lambda day: day.day == 15 or (day + timedelta(days=1)).day == 1),
        ("0 0 29 2 *", lambda day: (day.month, day.day) == (2, 29)),
        ("0 0 31 * *", lambda day: day.day == 31),
        ("0 0 * * 5#2", lambda day: day.isoweekday() == 5 and 8 <= day.day <= 14),
        ("0 0 * * FRI#5", lambda day: day.isoweekday() == 5 and day.day >= 29),
        ("0 0 * * L5", lambda day: day.isoweekday() == 5 and (day + timedelta(days=7)).month != day.month),
        ("0 0 * * FRIL", lambda day: day.isoweekday() == 5 and (day + timedelta(days=7)).month != day.month),
        ("0 0 13 * 5", lambda day: day.day == 13 or day.isoweekday() == 5),
        ("0 0 1 * 1#1", lambda day: day.day == 1 or (day.isoweekday() == 1 and day.day <= 7)),
        ("0 0 29 2 1#1", lambda day: day.month == 2 and (day.day == 29 or (day.isoweekday() == 1 and day.day <= 7))),
        ("0 0 * NOV-FEB 5-7", lambda day: day.month in (11, 12, 1, 2) and day.isoweekday() >= 5),
        (
            "0 0 0 1 1,7 * 2027-2031/2",
            lambda day: day.year in (2027, 2029, 2031) and day.month in (1, 7) and day.day == 1,
        ),
        ("0 0 */1 * 1", lambda day: day.isoweekday() == 1),
        ("0 0 1-31 * */6", lambda day: True),
        ("0 0 ? * 7", lambda day: day.isoweekday() == 7),
    ]
    first = datetime(2026, 1, 1, tzinfo=UTC)
    days = [first + timedelta(days=n) for n in range(1, 10 * 365)]

    for cron, is_due in cases:
        expected = [day for day in days if is_due(day)]
        found = [due.at for due in read_timing(cron=cron).upcoming(first, len(expected))]
        assert found == expected, cron

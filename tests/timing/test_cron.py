"""What an expression means, trap by trap, and what is refused."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import InvalidArgument
from ostinato.timing import Cron, in_words, read_timing
from tests.timing.instants import at, gone, local

NEW_YEAR = "2026-01-01"


def test_every_ten_seconds_is_not_every_second() -> None:
    found = [due.at.second for due in read_timing(cron="*/10 * * * * *").upcoming(at(NEW_YEAR), 7)]

    assert found == [10, 20, 30, 40, 50, 0, 10]


def test_seconds_come_first_and_years_last() -> None:
    timing = read_timing(cron="30 15 10 * * * 2027")

    assert timing.next_after(at(NEW_YEAR)) == at("2027-01-01T10:15:30")


@pytest.mark.parametrize("key", [None, "payments/seller-disbursement", "a/b"])
def test_daily_is_midnight_also_when_there_is_something_to_hash(key: str | None) -> None:
    for word in ("@daily", "@midnight", "@Daily"):
        assert local(NEW_YEAR, 2, cron=word, key=key) == ["01-02 00:00", "01-03 00:00"]


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("@hourly", "01-01 01:00"),
        ("@weekly", "01-04 00:00"),
        ("@monthly", "02-01 00:00"),
        ("@yearly", "01-01 00:00"),
        ("@annually", "01-01 00:00"),
    ],
)
def test_the_other_words_mean_what_they_say(word: str, first: str) -> None:
    assert local(NEW_YEAR, 1, cron=word, key="a/b") == [first]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("5-5 * * * *", ["01-01 00:05", "01-01 01:05"]),  # not the whole hour
        ("59/15 * * * *", ["01-01 00:59", "01-01 01:59"]),  # not every 15 minutes
        ("0 22-1 * * *", ["01-01 01:00", "01-01 22:00", "01-01 23:00", "01-02 00:00"]),
        ("0 0 * * FRI-MON", ["01-02 00:00", "01-03 00:00", "01-04 00:00", "01-05 00:00", "01-09 00:00"]),
        ("0 0 * * 7", ["01-04 00:00"]),
        ("0 0 * * 7-7", ["01-04 00:00", "01-11 00:00"]),
        ("0 0 * * 7-0", ["01-04 00:00", "01-11 00:00"]),
        ("0 0 * * 7-1", ["01-04 00:00", "01-05 00:00", "01-11 00:00"]),
        ("0 0 * * 0-7", ["01-02 00:00", "01-03 00:00"]),
        ("0 0 * * 2-7/2", ["01-03 00:00", "01-06 00:00", "01-08 00:00", "01-10 00:00"]),
        ("0 0 * jan,FEB mon#1", ["01-05 00:00", "02-02 00:00"]),
        ("0 0 L * *", ["01-31 00:00", "02-28 00:00"]),
        ("0 0 1-31 * 1", ["01-02 00:00", "01-03 00:00"]),  # either is enough
        ("0 0 */1 * 1", ["01-05 00:00", "01-12 00:00"]),  # */1 is *
        (" 0  0 *\t* * ", ["01-02 00:00"]),
    ],
)
def test_traps_of_ranges_steps_and_days(cron: str, expected: list[str]) -> None:
    assert local(NEW_YEAR, len(expected), cron=cron) == expected


@pytest.mark.parametrize("low", range(7))
def test_a_range_may_end_on_sunday_as_7_whatever_its_step(low: int) -> None:
    for step in range(1, 8):
        weekdays = Cron.parse(f"0 0 * * {low}-7/{step}").days.weekdays
        assert weekdays == frozenset(day % 7 for day in range(low, 8, step)), step


def test_h_is_stable_for_a_name() -> None:
    assert local(NEW_YEAR, 1, cron="H * * * *", key="a/b") == ["01-01 00:55"]


def test_h_spreads_names_over_the_whole_day() -> None:
    """croniter's own H gives all of them 240 minutes to share."""
    read = [Cron.parse("H H * * *", f"a/{number}") for number in range(1000)]

    assert len({(cron.hours, cron.minutes) for cron in read}) > 650


def test_a_hashed_day_is_in_every_month() -> None:
    for number in range(100):
        days = read_timing(cron="0 0 H * *", key=f"a/{number}").upcoming(at("2026-01-28T00:01"), 12)
        assert [due.at.month for due in days] == [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1]


def test_h_within_a_range_and_with_a_step() -> None:
    cron = Cron.parse("H(10-19) H(0-11)/4 * * *", "a/b")

    assert cron.minutes[0] in range(10, 20)
    assert len(cron.hours) == 3
    assert {late - early for early, late in zip(cron.hours, cron.hours[1:], strict=False)} == {4}


@pytest.mark.parametrize(
    ("cron", "rule"),
    [
        ("61 * * * *", "minute 61 is not in 0-59"),
        ("* 24 * * *", "hour 24 is not in 0-23"),
        ("* * 0 * *", "day of month 0 is not in 1-31"),
        ("* * * 13 *", "month 13 is not in 1-12"),
        ("* * * * 8", "day of week 8 is not in 0-7"),
        ("0000000000061 * * * *", "minute 0000000000061 is not in 0-59"),
        ("60 * * * * *", "second 60 is not in 0-59"),
        ("0 * * * * * 2100", "year 2100 is not in 1970-2099"),
        ("* * * JANUARY *", "month 'JANUARY' is not understood"),
        ("* * * * *,", "day of week '' is not understood"),
        ("-5 * * * *", "minute '-5' is not understood"),
        ("R * * * *", "minute 'R' is not understood"),
        ("* * 15W * *", "day of month '15W' is not understood"),
        ("? * * * *", "minute '\\?' is not understood"),
        ("٣ * * * *", "is not understood"),
        ("*/0 * * * *", "minute has a step of 0"),
        ("*/90 * * * *", "minute has a step of 90, it must be from 1 to 59; for longer intervals use `every`"),
        ("0 22-4/3 * * *", "hour 22-4/3 goes backwards; write two ranges"),
        ("* * * * 5#6", "day of week 5#6: a month has from 1 to 5 of a weekday"),
        ("* * * * 1,5#2", "day of week mixes '#' or 'L' with plain days"),
        ("H(30-10) * * * *", "must go from a lower to a higher number"),
        ("H(0-60) * * * *", "minute 60 is not in 0-59"),
        ("* * * * H(0-7)", "day of week 7 is not in 0-6"),
        ("0 0 0 1 1 * H", "year 'H' is not understood"),
        ("* * *", "it has 3 fields; write 5 fields"),
        ("", "it has 0 fields"),
        ("@every 5m", "for '@every 5m' write `every: 5m`"),
        ("@reboot", "@reboot is not known; there are @yearly"),
        ("0 0 30 2 *", "it never matches"),
        ("0 0 31 2,4,6,9,11 *", "it never matches"),
        ("0 0 0 29 2 * 2027", "it never matches"),
        ("* " * 300, "a text of at most 500 characters"),
    ],
)
def test_what_is_wrong_and_what_is_allowed_is_said(cron: str, rule: str) -> None:
    with pytest.raises(InvalidArgument, match=rule) as refused:
        Cron.parse(cron, "a/b")

    assert refused.value.argument == "cron"


def test_h_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="H is hashed from the schedule's namespace/name"):
        Cron.parse("H * * * *")


@given(st.text(alphabet="0123456789*/-,LH#?()@W MONjanfri", max_size=40), st.none() | st.just("a/b"))
def test_any_text_is_either_read_or_refused_with_a_rule(text: str, key: str | None) -> None:
    try:
        cron = Cron.parse(text, key)
    except InvalidArgument:
        return
    assert in_words(cron)


def test_what_will_not_come_again_is_known_at_once() -> None:
    began = time.process_time()
    timing = read_timing(cron="0 0 0 29 2 * 2024", time_zone="Africa/Cairo")

    assert timing.next_after(at(NEW_YEAR)) is None
    assert timing.next_after(datetime.max.replace(tzinfo=UTC)) is None
    assert time.process_time() - began < 0.1


def test_an_expression_is_read_once() -> None:
    assert Cron.parse("1 2 3 4 *", "a/b") is Cron.parse("1 2 3 4 *", "c/d")
    assert Cron.parse("H 2 3 4 THU", "a/b") is not Cron.parse("H 2 3 4 THU", "c/d")


@pytest.mark.parametrize(
    "cron",
    [
        *("*/5 * * * *", "0-59/5 2 * * *", "10/5 2 * * *", "H/5 2 * * *", "* 2 * * *", "0-59 2 * * *"),
        *("30 * * * *", "0,30 0-23 * * *", "*/10 30 2 * * *", "0 */1 * * *"),
    ],
)
def test_these_go_by_elapsed_time(cron: str) -> None:
    assert Cron.parse(cron, "a/b").elapsed


@pytest.mark.parametrize("cron", ["30 2 * * *", "0,30 2 * * *", "0 */2 * * *", "59/15 2 * * *", "0-10 1-4 * * *"])
def test_these_name_times_of_day(cron: str) -> None:
    assert not Cron.parse(cron).elapsed


def test_elapsed_time_is_neither_doubled_nor_silent() -> None:
    for cron, minutes in (("*/5 * * * *", 5), ("30 * * * *", 60), ("0 * * * *", 60)):
        for change in ("2026-03-28T18:00", "2026-10-24T18:00"):
            assert set(gone(change, 20, cron=cron, time_zone="Europe/Berlin")) == {minutes}


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("30 2 * * MON-FRI", "at 02:30, on Monday to Friday"),
        ("*/5 * * * *", "every 5th minute"),
        ("* * * * *", "every minute"),
        ("* * * * * *", "every second"),
        ("0 */2 * * *", "minute 0 of every 2nd hour"),
        ("0 9,17 1 1,7 *", "at 09:00 and 17:00, on day 1 of the month, in January and July"),
        ("0 0 13 * 5", "at 00:00, on day 13 of the month and also on Friday"),
        ("0 0 L * *", "at 00:00, on the last day of the month"),
        ("0 0 * * L5,1#2", "at 00:00, on the last Friday of the month and the second Monday of the month"),
        ("15 30 4 * * * 2030-2032", "at 04:30:15, in 2030 to 2032"),
        ("0 9-17/2 * * *", "minute 0 of hour 9 to 17 in steps of 2"),
        ("@weekly", "at 00:00, on Sunday"),
    ],
)
def test_an_expression_in_words(cron: str, words: str) -> None:
    assert in_words(Cron.parse(cron)) == words

"""What becomes of times that do not exist, or exist twice."""

from typing import Any

import pytest

from ostinato import InvalidArgument
from ostinato.timing import Gap, Overlap, read_timing
from tests.timing.instants import at, local

SPRING, AUTUMN = "2026-03-28T12:00", "2026-10-24T12:00"


@pytest.mark.parametrize(
    ("gap", "expected"),
    [("RunAfter", ["03-29 03:00", "03-30 02:30"]), ("Skip", ["03-30 02:30", "03-31 02:30"])],
)
def test_half_past_two_in_a_spring_gap(gap: str, expected: list[str]) -> None:
    assert local(SPRING, 2, cron="30 2 * * *", time_zone="Europe/Berlin", gap=gap) == expected


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("First", ["2026-11-01T05:30", "2026-11-02T06:30"]),
        ("Second", ["2026-11-01T06:30", "2026-11-02T06:30"]),
        ("Both", ["2026-11-01T05:30", "2026-11-01T06:30"]),
    ],
)
def test_half_past_one_twice_in_autumn(overlap: str, expected: list[str]) -> None:
    timing = read_timing(cron="30 1 * * *", time_zone="America/New_York", overlap=overlap)

    assert [due.at for due in timing.upcoming(at("2026-10-31T12:00"), 2)] == [at(text) for text in expected]


def test_the_defaults_run_after_a_gap_and_the_first_time() -> None:
    assert (Gap("RunAfter"), Overlap("First")) == (Gap.RUN_AFTER, Overlap.FIRST)
    assert local(SPRING, 1, cron="30 2 * * *", time_zone="Europe/Berlin") == ["03-29 03:00"]
    assert read_timing(cron="30 2 * * *", time_zone="Europe/Berlin").next_after(at(AUTUMN)) == at("2026-10-25T00:30")


def test_several_times_in_one_gap_run_once_behind_it() -> None:
    cron = "0,10,20 2 * * *"

    assert local(SPRING, 2, cron=cron, time_zone="Europe/Berlin") == ["03-29 03:00", "03-30 02:00"]


def test_a_time_in_a_gap_and_one_right_behind_it_are_one() -> None:
    assert local(SPRING, 2, cron="0 2,3 * * *", time_zone="Europe/Berlin") == ["03-29 03:00", "03-30 02:00"]


def test_asking_at_the_end_of_a_gap_does_not_give_it_again() -> None:
    timing = read_timing(cron="30 2 * * *", time_zone="Europe/Berlin")

    assert timing.next_after(at("2026-03-29T00:59:59.999999")) == at("2026-03-29T01:00")
    assert timing.next_after(at("2026-03-29T01:00")) == at("2026-03-30T00:30")


def test_midnight_that_does_not_exist() -> None:
    assert local("2025-03-08T12:00", 2, cron="@daily", time_zone="America/Havana") == ["03-09 01:00", "03-10 00:00"]


def test_every_six_hours_is_not_silent_for_twelve_where_midnight_does_not_exist() -> None:
    found = local("2025-03-08T18:00", 3, cron="0 */6 * * *", time_zone="America/Havana")

    assert found == ["03-08 18:00", "03-09 01:00", "03-09 06:00"]


def test_half_hours_of_lord_howe() -> None:
    zone = "Australia/Lord_Howe"

    assert local("2026-10-03T12:00", 2, cron="15 2 * * *", time_zone=zone) == ["10-04 02:30", "10-05 02:15"]
    assert local("2026-10-03T12:00", 1, cron="45 2 * * *", time_zone=zone) == ["10-04 02:45"]
    assert local("2026-04-04T12:00", 3, cron="45 1 * * *", time_zone=zone, overlap="Both") == [
        *("04-05 01:45", "04-05 01:45", "04-06 01:45")
    ]


def test_a_day_that_apia_skipped() -> None:
    found = local("2011-12-29T12:00", 3, cron="0 12 * * *", time_zone="Pacific/Apia")

    assert found == ["12-29 12:00", "12-31 00:00", "12-31 12:00"]
    assert local("2011-12-29T12:00", 1, cron="0 12 30 12 *", time_zone="Pacific/Apia", gap="Skip") == ["12-30 12:00"]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("europe/berlin", "did you mean Europe/Berlin"),
        ("new york", "did you mean America/New_York"),
        ("KST", "it must be a name of the IANA time zone database"),
        ("", "IANA"),
        ("+09:00", "IANA"),
        ("../../etc/passwd", "IANA"),
        ("right/UTC", "IANA"),
        ("localtime", "IANA"),
        ("Europe", "IANA"),
        ("a\0b", "IANA"),
        (["UTC"], "IANA"),
    ],
)
def test_a_zone_that_is_none_is_refused(name: Any, rule: str) -> None:
    with pytest.raises(InvalidArgument, match=rule) as refused:
        read_timing(cron="@daily", time_zone=name)

    assert refused.value.argument == "timeZone"

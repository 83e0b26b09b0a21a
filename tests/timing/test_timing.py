"""Everything around a cadence: intervals, bounds, exclusions, jitter."""

import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from ostinato import InvalidArgument
from ostinato.timing import Due, read_timing
from tests.timing.instants import at, gone, local

NEW_YEAR = "2026-01-01"
DAY = timedelta(days=1)


def test_an_interval_keeps_its_phase_whenever_it_is_asked() -> None:
    timing = read_timing(every="7m")
    known = [due.at for due in timing.upcoming(at(NEW_YEAR), 50)]

    for minute in range(300):
        assert timing.next_after(at(NEW_YEAR) + timedelta(minutes=minute, seconds=minute % 60)) in known
    assert {instant.timestamp() % 420 for instant in known} == {0}


def test_an_interval_counts_from_its_anchor() -> None:
    timing = read_timing(every="1h", anchor="2026-01-01T00:17:00Z")

    assert timing.next_after(at(NEW_YEAR)) == at("2026-01-01T00:17")
    assert timing.next_after(at("2025-06-01T12:00")) == at("2025-06-01T12:17")
    assert timing.next_after(at("2026-01-01T00:17")) == at("2026-01-01T01:17")


def test_an_interval_does_not_care_for_clocks() -> None:
    assert set(gone("2026-03-28T12:00", 30, every="90m", time_zone="Europe/Berlin")) == {90}


@pytest.mark.parametrize("every", ["1mo", "1y", "500ms", "1.5s", 0, "0s", "-5m", "", "soon", "200000w"])
def test_an_interval_that_is_none_is_refused(every: str | int) -> None:
    with pytest.raises(InvalidArgument, match=r"whole seconds, at least one.*months and years have no fixed length"):
        read_timing(every=every)


def test_bounds_are_inclusive() -> None:
    bounds: dict[str, Any] = {"not_before": "2026-01-03T00:00:00Z", "not_after": datetime(2026, 1, 5, tzinfo=UTC)}

    assert local(NEW_YEAR, 9, cron="@daily", **bounds) == ["01-03 00:00", "01-04 00:00", "01-05 00:00"]
    assert read_timing(cron="@daily", **bounds).next_after(at("2026-01-05")) is None


def test_excluded_instants_are_given_with_the_reason_and_never_as_the_next() -> None:
    timing = read_timing(cron="@daily", exclude=["2026-01-03", "2026-01-05/2026-01-06"])

    assert timing.upcoming(at(NEW_YEAR), 6) == [
        Due(at("2026-01-02")),
        Due(at("2026-01-03"), "2026-01-03"),
        Due(at("2026-01-04")),
        Due(at("2026-01-05"), "2026-01-05/2026-01-06"),
        Due(at("2026-01-06"), "2026-01-05/2026-01-06"),
        Due(at("2026-01-07")),
    ]
    assert timing.next_after(at("2026-01-04")) == at("2026-01-07")


def test_a_skipped_time_is_not_an_excluded_one() -> None:
    timing = read_timing(cron="30 2 * * *", time_zone="Europe/Berlin", gap="Skip", exclude=["2026-03-28"])

    found = timing.upcoming(at("2026-03-27T12:00"), 2)

    assert found == [Due(at("2026-03-28T01:30"), "2026-03-28"), Due(at("2026-03-30T00:30"))]


def test_exclusions_are_days_and_times_of_the_zone() -> None:
    seoul = {"cron": "0 */3 * * *", "time_zone": "Asia/Seoul"}

    days = read_timing(**seoul, exclude=[date(2026, 1, 2)])
    times = read_timing(**seoul, exclude=["2026-01-02T06:00/2026-01-02T12:00"])

    assert days.next_after(at("2026-01-01T14:59")) == at("2026-01-02T15:00")
    assert [due.at.hour for due in times.upcoming(at("2026-01-01T17:00"), 4) if due.excluded] == [21, 0]


@pytest.mark.parametrize("schedule", [{"every": "1s"}, {"cron": "* * * * * *"}])
def test_a_long_exclusion_is_jumped_over(schedule: dict[str, Any]) -> None:
    timing = read_timing(**schedule, time_zone="Europe/Berlin", exclude=["2026-01-02/2035-10-27"])

    assert timing.next_after(at("2026-01-02")) == at("2035-10-27T22:00")


@pytest.mark.parametrize("written", ["2026-1-2", "2026-02-30", "soon", "2026-01-01/", "2026-01-01T00:00", "", None, 5])
def test_an_exclusion_that_is_none_is_refused_by_its_place(written: Any) -> None:
    with pytest.raises(InvalidArgument, match="write a date '2026-12-25'") as refused:
        read_timing(cron="@daily", exclude=["2026-01-01", written])

    assert refused.value.argument == "exclude[1]"


def test_an_exclusion_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="its end must be after its start"):
        read_timing(cron="@daily", exclude=["2026-01-03/2026-01-01"])


def test_jitter_is_the_same_for_a_name_and_within_its_length() -> None:
    delays = {name: read_timing(cron="@daily", jitter="10m", key=name).delay for name in map(str, range(500))}

    assert delays == {name: read_timing(every="1h", jitter="10m", key=name).delay for name in delays}
    assert all(timedelta(0) <= delay < timedelta(minutes=10) for delay in delays.values())
    assert len(set(delays.values())) > 490
    assert min(delays.values()) < timedelta(seconds=30)
    assert max(delays.values()) > timedelta(minutes=9, seconds=30)


def test_jitter_neither_reorders_nor_doubles_nor_loses() -> None:
    """Also if it is longer than the distance from one instant to the next."""
    plain, late = read_timing(every="1m"), read_timing(every="1m", jitter="1h", key="a/b")

    instants = [due.at for due in late.upcoming(at(NEW_YEAR), 200)]

    assert late.delay > timedelta(minutes=1)
    assert instants == [due.at + late.delay for due in plain.upcoming(at(NEW_YEAR) - late.delay, 200)]
    assert instants[0] - at(NEW_YEAR) <= timedelta(minutes=1)
    assert late.next_after(at(NEW_YEAR)) == instants[0]


def test_bounds_and_exclusions_look_at_the_instant_without_its_jitter() -> None:
    schedule: dict[str, Any] = {"cron": "@daily", "jitter": "6h", "key": "a/b", "not_after": "2026-01-04T00:00:00Z"}
    timing = read_timing(**schedule, exclude=["2026-01-03T00:00/2026-01-03T00:01"])

    found = timing.upcoming(at("2026-01-01T12:00"), 9)

    assert [due.at - timing.delay for due in found] == [at("2026-01-02"), at("2026-01-03"), at("2026-01-04")]
    assert [due.excluded is not None for due in found] == [False, True, False]


@pytest.mark.parametrize(
    ("schedule", "argument", "rule"),
    [
        ({}, "cron", "give either `cron` or `every`"),
        ({"cron": "@daily", "every": "5m"}, "cron", "give either `cron` or `every`"),
        ({"cron": "@daily", "anchor": "2026-01-01T00:00:00Z"}, "anchor", "it goes with `every` only"),
        ({"cron": "@daily", "gap": "After"}, "dst.gap", "it must be RunAfter or Skip"),
        ({"cron": "@daily", "overlap": "first"}, "dst.overlap", "it must be First or Second or Both"),
        ({"cron": "@daily", "jitter": "5m"}, "jitter", "hashed from the schedule's namespace/name"),
        ({"cron": "@daily", "jitter": "2d", "key": "a/b"}, "jitter", "at most a day"),
        ({"cron": "@daily", "jitter": "soon", "key": "a/b"}, "jitter", "write it as"),
        ({"cron": "@daily", "not_before": "2026-01-01"}, "notBefore", "it must say its zone"),
        ({"cron": "@daily", "not_after": "soon"}, "notAfter", "write it as 2026-01-31T09:00:00Z"),
        (
            {"cron": "@daily", "not_before": "2026-01-02T00:00:00Z", "not_after": "2026-01-01T00:00:00Z"},
            "notAfter",
            "it must not be before notBefore",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name_in_the_yaml(
    schedule: dict[str, Any], argument: str, rule: str
) -> None:
    with pytest.raises(InvalidArgument, match=rule) as refused:
        read_timing(**schedule)

    assert refused.value.argument == argument


def test_a_next_instant_costs_microseconds() -> None:
    """10 to 25 here; a leader computes those of 10,000 schedules. Ten times as much would be a mistake."""
    timings = [
        read_timing(cron=cron, time_zone="Europe/Berlin") for cron in ("*/5 * * * *", "30 2 * * 1-5", "0 0 L * *")
    ]
    for timing in timings:
        timing.upcoming(at(NEW_YEAR), 300)

    began = time.process_time()
    for timing in timings:
        timing.upcoming(at(NEW_YEAR), 300)
    taken = time.process_time() - began

    assert taken / 900 < 250e-6


def test_an_instant_without_a_zone_is_refused() -> None:
    timing = read_timing(cron="@daily")

    with pytest.raises(InvalidArgument, match="it must say its zone"):
        timing.next_after(datetime(2026, 1, 1))
    with pytest.raises(InvalidArgument, match="it must say its zone"):
        timing.upcoming(datetime(2026, 1, 1), 3)


def test_an_instant_may_be_given_in_any_zone_and_comes_in_utc() -> None:
    asked = datetime.fromisoformat("2026-01-01T23:00:00+09:00")

    found = read_timing(cron="@hourly").next_after(asked)

    assert found == at("2026-01-01T15:00")
    assert found.tzinfo is UTC

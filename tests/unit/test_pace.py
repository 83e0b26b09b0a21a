"""How far ahead a worker claims."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato_worker.pace import MOST_AHEAD, Pace


def pace(jobs: int, seconds_each: float, concurrency: int = 8) -> Pace:
    """After so many jobs that took so long each."""
    pace = Pace(concurrency)
    pace.began(0.0)
    for done in range(1, jobs + 1):
        pace.finished(concurrency, done * seconds_each)
    return pace


def test_nothing_is_claimed_ahead_before_anything_is_known() -> None:
    assert Pace(8).window == 8


def test_long_jobs_are_not_claimed_ahead() -> None:
    assert pace(20, seconds_each=1).window == 8
    assert pace(20, seconds_each=60).window == 8


def test_about_100_ms_worth_of_short_jobs_is_claimed_ahead() -> None:
    assert pace(200, seconds_each=0.01).window == pytest.approx(8 + 80, abs=1)


def test_very_short_jobs_are_claimed_ahead_up_to_a_limit() -> None:
    assert pace(20_000, seconds_each=0.000_01).window == 8 + MOST_AHEAD


def test_what_did_not_get_its_turn_in_time_ends_claiming_ahead() -> None:
    quick = pace(20_000, seconds_each=0.000_01)

    quick.stalled()

    assert quick.window == 8


def test_time_without_work_says_nothing() -> None:
    quick = pace(200, seconds_each=0.01)

    quick.began(1_000)
    quick.finished(8, 1_000.01)

    assert quick.window == pytest.approx(8 + 80, abs=1)


def test_rounds_too_short_for_a_sample_are_one_together() -> None:
    """Else who holds nothing between two claims would go on as slowly as it began."""
    pace = Pace(8)
    for begins in range(20):
        pace.began(begins)
        pace.finished(8, begins + 0.001)

    assert pace.window == pytest.approx(8 + 800, abs=1)


@given(st.lists(st.tuples(st.integers(1, 10_000), st.floats(0, 100)), max_size=50))
def test_the_window_is_never_less_than_the_slots_nor_beyond_its_limit(steps: list[tuple[int, float]]) -> None:
    pace, now = Pace(3), 0.0
    for jobs, seconds in steps:
        now += seconds
        pace.finished(jobs, now)

    assert 3 <= pace.window <= 3 + MOST_AHEAD

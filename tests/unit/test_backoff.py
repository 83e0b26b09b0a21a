"""How long to wait before the next attempt."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import Decorrelated, Exponential, Fixed, InvalidArgument, Steps
from ostinato.backoff import DEFAULT, Backoff, read_backoff


class Middle(Random):
    """Chance that never takes sides."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


def waits(backoff: Backoff, attempts: int) -> list[float]:
    return [backoff.delay(attempt, Middle()).total_seconds() for attempt in range(1, attempts + 1)]


def test_the_default_doubles_from_two_seconds_and_stays_at_two_to_the_tenth() -> None:
    assert waits(DEFAULT, 12) == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024]


@given(attempt=st.integers(1, 32_767), seed=st.integers())
def test_jitter_is_a_tenth_at_most_however_many_attempts(attempt: int, seed: int) -> None:
    middle = DEFAULT.delay(attempt, Middle())

    assert 0.9 * middle <= DEFAULT.delay(attempt, Random(seed)) <= 1.1 * middle + timedelta(microseconds=1)


@given(attempt=st.integers(1, 32_767), seed=st.integers())
def test_decorrelated_waits_scatter_between_their_bounds(attempt: int, seed: int) -> None:
    wait = Decorrelated("1s", "1m").delay(attempt, Random(seed))

    assert timedelta(seconds=1) <= wait <= timedelta(minutes=1)


def test_steps_stay_at_the_last_one() -> None:
    assert waits(Steps(["1s", "10s", "1m"]), 5) == [1, 10, 60, 60, 60]


def test_a_policy_may_be_written_short() -> None:
    assert waits(read_backoff("5m"), 2) == [300, 300]
    assert waits(read_backoff(["1s", 2]), 3) == [1, 2, 2]
    assert read_backoff(None) is DEFAULT


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Exponential("1h", "1m"), "it must not be more than max"),
        (lambda: Exponential(factor=0.5), "it must be from 1 to 100"),
        (lambda: Fixed("soon"), "write it as"),
        (lambda: Fixed("1s", jitter=2), "it must be from 0 to 1"),
        (lambda: Steps([]), "it must hold at least one wait"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_where_it_is_written(make: object, rule: str) -> None:
    with pytest.raises(InvalidArgument, match=rule):
        make()  # type: ignore[operator]

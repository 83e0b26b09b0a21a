"""What the soak calls growth."""

from bench.soak.__main__ import judge
from bench.soak.worker import Sample


def samples(**last: int) -> list[Sample]:
    """Ten minutes of nothing new, but for the last two."""
    calm = Sample(seconds=0, done=0, memory_kib=100_000, descriptors=20, threads=4, tasks=9, connections=5, processes=2)
    return [calm] * 96 + [Sample(**(vars(calm) | last))] * 24


def test_what_stays_as_it_is_does_not_grow() -> None:
    assert judge(samples()) == []


def test_what_has_grown_is_named() -> None:
    assert judge(samples(memory_kib=110_000, descriptors=23, tasks=90)) == [
        "memory grew from 97.7 to 107.4 MiB",
        "descriptors grew from 20 to 23",
        "tasks grew from 9 to 90",
    ]


def test_a_run_that_was_too_short_proves_nothing() -> None:
    assert judge(samples()[:4]) == ["4 samples are too few to judge"]

"""How the command line says things."""

from datetime import UTC, datetime, timedelta

import click
import pytest

from ostinato.lifecycle import State
from ostinato.store import QueueCount
from ostinato_cli.ages import age, at, until
from ostinato_cli.options import instant, json_object, length, moment
from ostinato_cli.queues import by_queue
from ostinato_cli.table import shortened, show_table

NOW = datetime(2026, 1, 31, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def test_columns_are_aligned_and_empty_cells_are_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["ID", "ERROR", "AGE"], [["1", "", "5m"], ["1234", "a\nb", "3d"]])

    assert capsys.readouterr().out == "ID     ERROR   AGE\n1      -       5m\n1234   a b     3d\n"


def test_long_messages_are_shortened() -> None:
    assert shortened("x" * 80) == "x" * 80
    assert shortened("x" * 81) == "x" * 79 + "…"


def test_ages_are_whole_seconds_and_never_negative() -> None:
    assert age(NOW - timedelta(minutes=5, microseconds=1), NOW) == "5m"
    assert age(NOW + MINUTE, NOW) == "0s"
    assert (until(NOW + MINUTE, NOW), until(NOW - MINUTE, NOW)) == ("in 1m", "for 1m")
    assert at(NOW - MINUTE, NOW) == "2026-01-31 08:59:00 UTC (1m ago)"


def test_a_moment_is_a_time_or_so_long_ago() -> None:
    assert moment("2026-01-31T18:00:00+09:00") == NOW
    assert moment("1h30m") == 90 * MINUTE
    assert length("60") == MINUTE


@pytest.mark.parametrize("text", ["", "soon", "2026-01-31", "2026-01-31T09:00:00", "2026-13-01T00:00:00Z", "-5m"])
def test_a_time_must_be_whole_and_say_its_zone(text: str) -> None:
    with pytest.raises(click.BadParameter):
        moment(text)
    with pytest.raises(click.BadParameter):
        instant(text)


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '{"a": Infinity}', "[" * 10_000, b"\xff{}"])
def test_json_must_be_an_object(text: str | bytes) -> None:
    with pytest.raises(click.BadParameter):
        json_object(text)


def test_a_queue_sums_its_states_and_keeps_the_longest_wait() -> None:
    counts = [
        QueueCount("shop", "a", State.PENDING, jobs=5, ready=2, oldest_ready=MINUTE),
        QueueCount("shop", "a", State.RETRYING, jobs=3, ready=1, oldest_ready=2 * MINUTE),
        QueueCount("shop", "b", State.DEAD_LETTERED, jobs=1, ready=0, oldest_ready=None),
    ]

    rows = [queue.row() for queue in by_queue(counts)]

    assert rows == [["shop", "a", "3", "2m", "5", "3", "0", "0"], ["shop", "b", "0", "-", "0", "0", "0", "1"]]

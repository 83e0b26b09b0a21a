"""`ostinato cron`, which needs no database."""

import pytest

from tests.cli.command import ostinato


def test_an_expression_is_explained_and_its_instants_are_in_the_zone_and_in_utc() -> None:
    done = ostinato("cron", "30 2 * * *", "--tz", "Europe/Berlin", "--next", 3, "--from", "2026-03-27T12:00:00Z")

    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "at 02:30 (Europe/Berlin)",
        "where clocks change: a time that does not exist runs right after the gap, "
        "one that exists twice runs the first time",
        "",
        "LOCAL                        UTC                   CLOCKS",
        "2026-03-28 02:30:00 +01:00   2026-03-28 01:30:00   -",
        "2026-03-29 03:00:00 +02:00   2026-03-29 01:00:00   put forward 1h on 2026-03-29 at 02:00",
        "2026-03-30 02:30:00 +02:00   2026-03-30 00:30:00   -",
    ]


def test_programs_get_the_same_as_json() -> None:
    arguments = ("--tz", "America/New_York", "--from", "2026-10-31T12:00:00Z", "--next", 2, "--overlap", "Both")

    document = ostinato("cron", "30 1 * * *", *arguments, "-o", "json").json

    assert document["words"] == "at 01:30"
    assert (document["time_zone"], document["elapsed"]) == ("America/New_York", False)
    assert document["next"] == [
        {"at": "2026-11-01T05:30:00Z", "local": "2026-11-01T01:30:00-04:00", "clocks": "the first 01:30"},
        {
            "at": "2026-11-01T06:30:00Z",
            "local": "2026-11-01T01:30:00-05:00",
            "clocks": "put back 1h on 2026-11-01 at 02:00, the second 01:30",
        },
    ]


def test_a_change_long_ago_is_marked_too() -> None:
    arguments = ("--tz", "Asia/Pyongyang", "--from", "2016-01-01T00:00:00Z", "--next", 1, "-o", "json")

    [row] = ostinato("cron", "0 0 0 1 1 * 2030", *arguments).json["next"]

    assert row["clocks"] == "put forward 30m on 2018-05-04 at 23:30"


def test_without_a_start_it_is_now_and_without_a_count_ten() -> None:
    done = ostinato("cron", "*/5 * * * *")

    assert len(done.out.splitlines()) == 4 + 10
    assert "by elapsed time" in done.out


def test_what_never_comes_again_is_said() -> None:
    done = ostinato("cron", "0 0 0 1 1 * 2020")

    assert (done.code, done.err) == (0, "never again\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["61 * * * *"], "minute 61 is not in 0-59"),
        (["@daily", "--tz", "Europe/Berln"], "did you mean Europe/Berlin?"),
        (["@daily", "--from", "2026-01-01T00:00:00"], "says no time zone"),
        (["@daily", "--gap", "Never"], "'RunAfter', 'Skip'"),
        (["@daily", "--next", "0"], "1<=x<=1000"),
        (["H * * * *"], "give --name"),
    ],
)
def test_what_is_wrong_is_said_with_code_2(arguments: list[str], said: str) -> None:
    done = ostinato("cron", *arguments)

    assert done.code == 2
    assert said in done.err


def test_h_is_hashed_from_the_name() -> None:
    a, b = (ostinato("cron", "H H * * *", "--name", name, "-o", "json").json["words"] for name in ("a/b", "c/d"))

    assert a != b
    assert a.startswith("at ")

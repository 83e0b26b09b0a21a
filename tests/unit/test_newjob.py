"""What may be asked for: each rule with the error that names the argument, the value and the rule."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import InvalidArgument, NewJob, enqueue
from ostinato.durations import format_duration, parse_duration
from ostinato.payload import MAX_BYTES, encode_object, encode_value

CIRCLE: dict[str, Any] = {}
CIRCLE["self"] = CIRCLE


def nested(levels: int) -> dict[str, Any]:
    return {} if levels == 1 else {"a": nested(levels - 1)}


@pytest.mark.parametrize(
    ("argument", "value", "rule"),
    [
        ("job_type", "", "letters, digits"),
        ("job_type", "has space", "letters, digits"),
        ("job_type", "a@2", "letters, digits"),
        ("job_type", "x" * 201, "at most 200"),
        ("job_type", 5, "letters, digits"),
        ("namespace", "Upper", "Kubernetes namespace"),
        ("namespace", "x" * 64, "at most 63"),
        ("queue", "-dash", "a letter or digit at both ends"),
        ("queue", "a/b", "letters, digits"),
        ("priority", 32768, "whole number from -32,768 to 32,767"),
        ("priority", True, "whole number"),
        ("priority", 1.5, "whole number"),
        ("run_at", datetime(2030, 1, 1), "with a time zone"),
        ("run_at", "tomorrow", "with a time zone"),
        ("run_at", datetime(1969, 1, 1, tzinfo=UTC), "from 1970 to 9998"),
        ("delay", "5 minutes", "write it as"),
        ("delay", "", "write it as"),
        ("delay", -1, "from 0 to 100 years"),
        ("delay", float("nan"), "write it as"),
        ("delay", float("inf"), "write it as"),
        ("delay", "9" * 400 + "s", "write it as"),
        ("delay", True, "write it as"),
        ("delay", timedelta(days=40_000), "from 0 to 100 years"),
        ("timeout", 0, "more than 0"),
        ("timeout", "367d", "at most 366 days"),
        ("max_attempts", 0, "from 1 to 32,767"),
        ("job_version", 0, "from 1"),
        ("dedup", "maybe", "one of skip, enqueue, replace"),
        ("dedup_key", "", "1 to 500 characters"),
        ("dedup_key", "x" * 501, "1 to 500 characters"),
        ("idempotency_key", "a\0b", "no NUL"),
        ("idempotency_ttl", "soon", "write it as"),
        ("concurrency_key", "\ud800", "no lone surrogate"),
        ("context", [1], "must be an object"),
        ("payload", [1], "must be an object"),
        ("payload", "text", "must be an object"),
        ("payload", {"a": "\0"}, r"cannot hold the character NUL \(at a\)"),
        ("payload", {"\0": 1}, "cannot hold the character NUL"),
        ("payload", {"a": float("nan")}, r"no number nan \(at a\)"),
        ("payload", {"a": 10**5000}, "it has a number of too many digits|it must be JSON"),
        ("payload", {"a": {"b": [float("nan")]}}, r"no number nan \(at a.b\[0\]\)"),
        ("payload", {"a": float("inf")}, r"no number inf \(at a\)"),
        ("payload", {"a": "\ud800"}, "surrogate pair"),
        ("payload", {"a": object()}, "must be JSON"),
        ("payload", {1: "a"}, "the key 1 must be a string"),
        ("payload", {"a": [{2: "b"}]}, r"the key 2 \(at a\[0\]\) must be a string"),
        ("payload", {"a": "x" * MAX_BYTES}, "131,081 bytes of JSON; the most is 131,072"),
        ("payload", {f"k{n}": n for n in range(501)}, "501 keys; the most is 500"),
        ("payload", {"a": [{"b": n} for n in range(500)]}, "501 keys; the most is 500"),
        ("payload", nested(11), "deeper than 10 levels"),
        ("payload", nested(900), "deeper than 10 levels"),
        ("payload", CIRCLE, "deeper than 10 levels"),
    ],
)
def test_a_bad_argument_raises_an_error_that_names_it_its_value_and_the_rule(
    argument: str, value: Any, rule: str
) -> None:
    options = {"job_type": "work"} | {argument: value}

    with pytest.raises(InvalidArgument, match=rf"^{argument} is (?s:.)+; .*{rule}") as refusal:
        enqueue(object(), **options)  # type: ignore[call-overload]

    assert refusal.value.argument == argument
    assert isinstance(refusal.value, ValueError)


def test_run_at_and_delay_exclude_each_other() -> None:
    with pytest.raises(InvalidArgument, match="delay is '5m'; give run_at or delay, not both"):
        NewJob("work", run_at=datetime.now(UTC), delay="5m").options()


def test_an_unknown_option_is_a_mistake_of_the_program() -> None:
    with pytest.raises(TypeError, match="prio"):
        enqueue(object(), "work", prio=1)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("90s", timedelta(seconds=90)),
        ("1h30m", timedelta(minutes=90)),
        ("250ms", timedelta(milliseconds=250)),
        ("1.5h", timedelta(minutes=90)),
        ("2w", timedelta(weeks=2)),
        (90, timedelta(seconds=90)),
        (0.25, timedelta(milliseconds=250)),
        (timedelta(days=1), timedelta(days=1)),
    ],
)
def test_durations_may_be_written_in_many_ways(written: Any, meant: timedelta) -> None:
    assert parse_duration("delay", written) == meant


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(milliseconds=250), "250ms"),
        (timedelta(seconds=59.9), "59s"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(hours=2, seconds=5), "2h"),
        (timedelta(days=3, hours=2, minutes=1), "3d2h"),
    ],
)
def test_durations_are_shown_by_their_two_largest_units(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


def test_limits_are_met_exactly() -> None:
    encode_object("payload", nested(10))
    encode_object("payload", {f"k{n}": n for n in range(500)})
    assert len(encode_object("payload", {"a": "x" * (MAX_BYTES - len('{"a": ""}'))})) == MAX_BYTES - 1


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
trees = st.recursive(leaves, lambda node: st.lists(node) | st.dictionaries(st.text(), node), max_leaves=30)


@given(st.dictionaries(st.text(), trees))
def test_a_payload_is_encoded_or_refused_and_nothing_else(payload: dict[str, Any]) -> None:
    try:
        text = encode_object("payload", payload)
    except InvalidArgument as refusal:
        assert refusal.argument == "payload"  # noqa: PT017
    else:
        assert "\0" not in text
        assert "NaN" not in text or "NaN" in repr(payload)


def test_what_a_handler_reports_may_be_any_json_and_none_is_nothing() -> None:
    assert [encode_value("output", value) for value in (None, 3, "a", [1], {"a": 1})] == [
        None,
        "3",
        '"a"',
        "[1]",
        '{"a":1}',
    ]

"""What an operator may configure, and what arguments a statement takes."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from ostinato import InvalidArgument
from ostinato_worker.builtin.statement import configure, read_statements


def test_parameters_become_places_with_their_types_and_texts_are_left_alone() -> None:
    source = """
        update a set b = ':x', c = "d:x", e = E'\\':x', f = $t$ :x $t$, g = '{"k":true}'::jsonb -- :x
        where h = :x and i = any(:many) and j[1:2] = /* :x */ k and l = :x limit :limit;
    """

    statement = configure("one", {"statement": source, "args": {"x": "text", "many": "bigint[]"}})

    assert statement.text.split("\n")[0].endswith("""'{"k":true}'::jsonb -- :x""")
    assert "h = $1::text and i = any($2::bigint[]) and j[1:2] = /* :x */ k and l = $1::text" in statement.text
    assert statement.text.endswith("limit $3::bigint")
    assert statement.values({"many": [1, 2], "x": "a"}) == ["a", [1, 2], 1000]


@pytest.mark.parametrize(
    ("kind", "given", "bound"),
    [
        ("text", "'; drop table jobs; --", "'; drop table jobs; --"),
        ("boolean", True, True),
        ("integer", 7, 7),
        ("numeric", "1.10", Decimal("1.10")),
        ("date", "2026-01-31", date(2026, 1, 31)),
        ("timestamptz", "2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("interval", "30d", timedelta(days=30)),
        ("uuid", "0199a5b0-7c1e-7d3a-9a55-3f2f6d1c8e42", UUID("0199a5b0-7c1e-7d3a-9a55-3f2f6d1c8e42")),
        ("jsonb", {"a": [1]}, '{"a":[1]}'),
        ("interval[]", ["1h", 60], [timedelta(hours=1), timedelta(minutes=1)]),
    ],
)
def test_json_becomes_what_postgres_takes(kind: str, given: Any, bound: Any) -> None:
    statement = configure("one", {"statement": "select :x", "args": {"x": kind}})

    assert statement.values({"x": given}) == [bound]


@pytest.mark.parametrize(
    ("args", "rule"),
    [
        ({}, "the statement takes x, each exactly once"),
        ({"x": 1, "y": 2}, "the statement takes x, each exactly once"),
        ({"x": 1, "limit": 10**9}, "the statement takes x, each exactly once"),
        ({"x": "many"}, "args.x is 'many'; Input should be a valid integer"),
        ({"x": None}, "args.x is None"),
        ({"x": 2**31}, "args.x is 2147483648"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args: dict[str, Any], rule: str) -> None:
    statement = configure("one", {"statement": "delete from a where b = :x limit :limit", "args": {"x": "integer"}})

    with pytest.raises(InvalidArgument, match=rule):
        statement.values(args)


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ("delete from a", "valid dictionary"),
        ({}, "statement: Field required"),
        ({"statement": "select 1", "batch": 1}, "batch: Extra inputs"),
        ({"statement": "select 1; select 2"}, "it must be one statement"),
        ({"statement": "select :x"}, 'say its type in args: {x = "text"}'),
        ({"statement": "select 1", "args": {"x": "text"}}, "the statement must have a :x"),
        ({"statement": "select :limit", "args": {"limit": "text"}}, "the statement must have a :limit, or its args"),
        ({"statement": "select 1", "limit": 5}, "only to a statement with a :limit"),
        ({"statement": "select :limit", "limit": 0}, "limit: Input should be greater"),
        ({"statement": "select :x", "args": {"x": "text); drop table a; --"}}, "is not among text, boolean"),
    ],
)
def test_an_entry_that_breaks_a_rule_is_refused_when_it_is_read(entry: Any, rule: str) -> None:
    with pytest.raises(InvalidArgument, match="OSTINATO_SQL_FILE is 'one'") as caught:
        configure("one", entry)

    assert rule in caught.value.rule.replace("Value error, ", "")


@pytest.mark.parametrize("name", ["sql.toml", "sql.json"])
def test_a_file_is_toml_or_json(tmp_path: Path, name: str) -> None:
    toml = '[forget]\nstatement = "delete from a where b < :x limit :limit"\nlimit = 5\nargs = {x = "interval"}\n'
    entry = {"statement": "delete from a where b < :x limit :limit", "limit": 5, "args": {"x": "interval"}}
    path = tmp_path / name
    path.write_text(toml if name.endswith(".toml") else json.dumps({"forget": entry}))

    [statement] = read_statements(path).values()

    assert (statement.limit, statement.values({"x": "1h"})) == (5, [timedelta(hours=1), 5])


@pytest.mark.parametrize(("name", "text"), [("a.toml", "{"), ("a.json", "["), ("a.json", "[]"), ("a.toml", None)])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: str | None) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)

    with pytest.raises(InvalidArgument, match=name):
        read_statements(tmp_path / name)

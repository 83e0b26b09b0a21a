"""The built-in handler `sql`, on real servers."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from ostinato import PermanentError, TransientError
from ostinato.handler import Handler
from ostinato_worker.builtin import BuiltinSettings, builtin_handlers
from tests.builtin.attempt import Ledger, attempt, context

FILE = """
[forget_sessions]
statement = '''
delete from sessions where id in (
    select id from sessions where seen_at < now() - :older and owner = :owner order by id limit :limit
)
'''
limit = 10
args = {older = "interval", owner = "text"}

[close_sessions]
statement = "update sessions set owner = owner where id = any(:ids)"
args = {ids = "bigint[]"}

[all_types]
statement = '''
select 1 where :a is not null and :b is not null and :c is not null and :d is not null and :e is not null
           and :f is not null and :g is not null and :h is not null and :i is not null and :j ->> 'k' = 'v'
'''
[all_types.args]
a = "boolean"
b = "integer"
c = "bigint"
d = "double precision"
e = "numeric"
f = "date"
g = "timestamptz"
h = "interval"
i = "uuid"
j = "jsonb"

[misspelt]
statement = "delete from sesions"

[divide]
statement = "select 1 / :by"
args = {by = "integer"}

"""
SESSIONS = """
create table sessions (id bigint primary key, seen_at timestamptz not null, owner text not null);
insert into sessions select id, now() - interval '2 days', 'ada' from generate_series(1, 25) id;
insert into sessions select id, now(), 'ada' from generate_series(26, 30) id;
insert into sessions select id, now() - interval '2 days', 'bob' from generate_series(31, 33) id;
"""
FORGET = {"name": "forget_sessions", "args": {"older": "1d", "owner": "ada"}}


@pytest.fixture
async def pool(dsn: str, conn: Any) -> AsyncIterator[Any]:
    await conn.execute(SESSIONS)
    async with asyncpg.create_pool(dsn, min_size=1, max_size=2) as pool:
        yield pool


@pytest.fixture
def sql(tmp_path: Path, pool: Any) -> Handler:
    path = tmp_path / "sql.toml"
    path.write_text(FILE)
    return next(handler for handler in builtin_handlers(BuiltinSettings(sql_file=path), pool) if handler.name == "sql")


async def test_a_batched_delete_goes_on_until_there_is_no_full_batch(sql: Handler, conn: Any) -> None:
    line = Ledger()

    output = await attempt(sql, FORGET, context(sql, line))

    assert output == {"rows": 25}
    assert line.told == [{"rows": 10}, {"rows": 20}, {"rows": 25}]
    assert await conn.fetchval("select count(*) from sessions") == 8


async def test_each_batch_is_committed_before_it_is_told(sql: Handler, conn: Any) -> None:
    left: list[int] = []

    async def look(_: Any) -> None:
        left.append(await conn.fetchval("select count(*) from sessions"))

    await attempt(sql, FORGET, context(sql, Ledger(on_progress=look)))

    assert left == [23, 13, 8]


async def test_a_cancelled_attempt_stops_between_two_batches_and_the_next_one_goes_on(sql: Handler, conn: Any) -> None:
    async def call_off(_: Any) -> None:
        ctx.cancelled.set("cancelled by a person")

    ctx = context(sql, Ledger(on_progress=call_off))

    with pytest.raises(TransientError, match=r"stopped after 10 rows \(cancelled by a person\)") as caught:
        await attempt(sql, FORGET, ctx)

    assert caught.value.code == "CANCELLED"
    assert await conn.fetchval("select count(*) from sessions") == 23
    assert await attempt(sql, FORGET, context(sql, Ledger(), progress={"rows": 10})) == {"rows": 25}


async def test_a_statement_without_a_limit_is_run_once(sql: Handler) -> None:
    line = Ledger()

    output = await attempt(sql, {"name": "close_sessions", "args": {"ids": [1, 2, 99]}}, context(sql, line))

    assert (output, line.told) == ({"rows": 2}, [{"rows": 2}])


async def test_arguments_are_bound_and_never_part_of_the_statement(sql: Handler, conn: Any) -> None:
    args = {"older": "1d", "owner": "ada' or true or owner = '"}

    output = await attempt(sql, {"name": "forget_sessions", "args": args})

    assert output == {"rows": 0}
    assert await conn.fetchval("select count(*) from sessions") == 33


async def test_every_type_arrives(sql: Handler) -> None:
    args = {
        "a": False,
        "b": -(2**31),
        "c": 2**63 - 1,
        "d": 0.1,
        "e": "12345678901234567890.123456789",
        "f": "2026-01-31",
        "g": "2026-01-31T12:00:00+09:00",
        "h": "1h30m",
        "i": "0199a5b0-7c1e-7d3a-9a55-3f2f6d1c8e42",
        "j": {"k": "v"},
    }

    assert await attempt(sql, {"name": "all_types", "args": args}) == {"rows": 1}


@pytest.mark.parametrize(
    ("payload", "code", "message"),
    [
        (
            {"name": "drop_everything"},
            "PAYLOAD_INVALID",
            "there is no statement 'drop_everything'; .* has: all_types, ",
        ),
        ({"name": "close_sessions", "args": {"ids": ["x"]}}, "PAYLOAD_INVALID", r"args.ids is \['x'\]"),
        ({"name": "close_sessions"}, "PAYLOAD_INVALID", "the statement takes ids"),
        ({"name": "misspelt"}, "SQL_REFUSED", 'Postgres refuses misspelt: relation "sesions" does not exist'),
        ({"name": "divide", "args": {"by": 0}}, "SQL_REFUSED", "division by zero"),
    ],
)
async def test_what_would_fail_again_is_not_tried_again(
    sql: Handler, payload: dict[str, Any], code: str, message: str
) -> None:
    with pytest.raises(PermanentError, match=message) as caught:
        await attempt(sql, payload)

    assert caught.value.code == code


def test_sql_in_a_payload_is_refused(sql: Handler) -> None:
    with pytest.raises(ValueError, match="statement"):
        sql.read('{"name": "close_sessions", "statement": "delete from sessions"}')


async def test_without_a_file_there_is_no_such_handler(pool: Any) -> None:
    names = [handler.name for handler in builtin_handlers(BuiltinSettings(), pool)]

    assert names == ["http", "log"]

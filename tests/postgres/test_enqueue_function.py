"""`ostinato.enqueue()` and the ids, as callers in any language meet them."""

from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.postgres.actors import everything, room_of


async def test_the_function_refuses_what_the_rules_forbid_for_callers_in_any_language(conn: Any) -> None:
    refused = {
        "select ostinato.enqueue('work', dedup => 'maybe')": "dedup is 'maybe'; it must be skip, enqueue or replace",
        "select ostinato.enqueue(null)": "job_type is null; it must be given",
        "select ostinato.enqueue('')": "job_type is '';",
        "select ostinato.enqueue('work', priority => 40000)": "priority is '40000'; it must be from -32768 to 32767",
        "select ostinato.enqueue('work', max_attempts => 0)": "max_attempts is '0'",
        "select ostinato.enqueue('work', run_at => now(), delay => '1 h')": "give run_at or delay, not both",
        "select ostinato.enqueue('work', '[]')": "payload must be an object",
        "select ostinato.enqueue('work', jsonb_build_object('a', repeat('x', 131072)))": "at most 131072 bytes",
        "select ostinato.enqueue('work', run_at => '20000-01-01')": "run_at must be from 1970 to 9998",
        "select ostinato.enqueue('work', run_at => 'infinity')": "run_at must be from 1970 to 9998",
        "select ostinato.enqueue('work', timeout => '0 s')": "timeout is '00:00:00'; it must be more than 0",
        "select ostinato.enqueue('work', timeout => '1000 years')": "it must be more than 0 and at most 366 days",
        "select ostinato.enqueue('work', job_version => 0)": "job_version is '0'; it must be more than 0",
        "select ostinato.enqueue(repeat('x', 201))": "at most 200 characters",
        "select ostinato.enqueue('send mail')": "job_type is 'send mail'; it must be letters, digits",
        "select ostinato.enqueue('work@2')": "job_type is 'work@2'; it must be letters, digits",
        "select ostinato.enqueue(E'work\\n')": "it must be letters, digits",
        "select ostinato.enqueue('work', queue => repeat('x', 201))": "a name must have 1 to 200 bytes",
        "select ostinato.enqueue('work', dedup_key => '')": "a key must have 1 to 2000 bytes",
    }

    for statement, reason in refused.items():
        with pytest.raises(asyncpg.PostgresError) as refusal:
            await conn.execute(statement)
        assert reason in str(refusal.value), statement
        assert refusal.value.sqlstate in {"22023", "23514"}, statement

    assert await everything(conn) == []


async def test_the_function_answers_with_an_id_and_whether_it_was_created(conn: Any) -> None:
    row = await conn.fetchrow(
        """
        select * from ostinato.enqueue(
          job_type => 'send_email', payload => '{"to": "a@example.com"}',
          namespace => 'default', queue => 'default', priority => 0, run_at => null, delay => null,
          dedup_key => null, dedup => 'skip', idempotency_key => null,
          max_attempts => null, timeout => null, context => null, job_version => 1)
        """
    )

    assert dict(row) == {"id": row["id"], "created": True}
    assert isinstance(row["id"], UUID)
    assert row["id"].version == 7
    assert await room_of(conn, row["id"]) == "jobs"


async def test_ids_grow_with_time_and_carry_it(conn: Any) -> None:
    ids = [await conn.fetchval("select ostinato.uuidv7()") for _ in range(200)]
    now = await conn.fetchval("select now()")

    assert [made.version for made in ids] == [7] * 200
    assert len(set(ids)) == 200
    assert ids == sorted(ids)
    assert abs((ids[-1].int >> 80) / 1000 - now.timestamp()) < 5
    first = await conn.fetchval("select ostinato.first_id($1::timestamptz - interval '10 s')", now)
    after = await conn.fetchval("select ostinato.first_id($1::timestamptz + interval '10 s')", now)
    assert first < ids[0] < ids[-1] < after


async def test_an_instant_before_1970_or_far_ahead_has_a_first_id_too(conn: Any) -> None:
    first = await conn.fetchval("select ostinato.first_id('1900-01-01 00:00+00')")
    last = await conn.fetchval("select ostinato.first_id('infinity')")

    assert first < await conn.fetchval("select ostinato.uuidv7()") < last

"""The bare-SQL limit: a table, an insert, a claim, a delete by id. No retries, fences, history, keys or wake-ups."""

from __future__ import annotations

import json
from typing import Any

import asyncpg

SCHEMA = """
drop schema if exists bare cascade;
create schema bare;
create table bare.jobs (id bigserial primary key, state smallint not null default 0, payload jsonb not null);
create index on bare.jobs (id) where state = 0;
"""
INSERT = "insert into bare.jobs (payload) values ($1) returning id"
FILL = """
insert into bare.jobs (payload)
select jsonb_build_object('n', n, 'pad', repeat('x', 100)) from generate_series(1, $1) as n
"""
CLAIM = """
update bare.jobs set state = 1
where id = any(array(select id from bare.jobs where state = 0 order by id limit $1 for update skip locked))
returning id, payload
"""
DELETE = "delete from bare.jobs where id = any($1::bigint[])"


class Limit:
    name = "bare SQL"

    async def setup(self, conn: asyncpg.Connection[Any]) -> None:
        await conn.execute(SCHEMA)

    async def fill(self, conn: asyncpg.Connection[Any], jobs: int) -> None:
        await conn.execute(FILL, jobs)
        await conn.execute("vacuum analyze bare.jobs")

    async def enqueue(self, conn: asyncpg.Connection[Any], payloads: list[dict[str, Any]]) -> None:
        for payload in payloads:
            await conn.fetchval(INSERT, json.dumps(payload))

    async def enqueue_bulk(self, conn: asyncpg.Connection[Any], payloads: list[dict[str, Any]]) -> None:
        await conn.copy_records_to_table(
            "jobs", schema_name="bare", columns=["payload"], records=[(json.dumps(payload),) for payload in payloads]
        )

    async def drain(self, conn: asyncpg.Connection[Any], batch: int, most: int) -> int:
        done = 0
        while done < most and (rows := await conn.fetch(CLAIM, batch)):
            await conn.execute(DELETE, [row["id"] for row in rows])
            done += len(rows)
        return done

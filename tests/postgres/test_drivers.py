"""Enqueue on the caller's own connection: each driver for real, in its own transaction."""

import json
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from ostinato import InvalidArgument, NewJob, enqueue, enqueue_many

OPTIONS: dict[str, Any] = {
    "priority": 4,
    "delay": "5m",
    "timeout": "30s",
    "max_attempts": 3,
    "context": {"tenant": "100%"},
    "queue": "mail",
}
MANY = [NewJob("work", {"n": 1}), NewJob("work", {"n": 2}, **OPTIONS), NewJob("other")]
KEYED = [NewJob("work", dedup_key="k"), NewJob("work", dedup_key="k")]


async def expect(dsn: str, jobs: int) -> None:
    conn = await asyncpg.connect(dsn)
    rows = await conn.fetch("select payload, queue, priority, context from ostinato.jobs")
    await conn.close()
    assert len(rows) == jobs
    for row in rows:
        if row["queue"] == "mail":
            assert (row["priority"], json.loads(row["context"])) == (4, {"tenant": "100%"})


async def test_asyncpg_connections_pools_and_their_connections(dsn: str) -> None:
    async with asyncpg.create_pool(dsn, min_size=1, max_size=2) as pool:
        assert (await enqueue(pool, "work", {"n": 1})).created
        async with pool.acquire() as conn, conn.transaction():
            assert (await enqueue(conn, "work", **OPTIONS)).created
            assert len(await enqueue_many(conn, MANY)) == 3

    await expect(dsn, 5)


async def test_asyncpg_with_json_codecs_of_the_callers_own(dsn: str) -> None:
    conn = await asyncpg.connect(dsn)
    for kind in ("json", "jsonb"):
        await conn.set_type_codec(kind, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")

    await enqueue(conn, "work", {"n": 1})
    await enqueue(conn, "work", {"n": 1}, dedup_key="k")
    await enqueue_many(conn, [NewJob("work", {"n": 1})])

    rows = await conn.fetch("select payload from ostinato.jobs")
    await conn.close()
    assert [row["payload"] for row in rows] == [{"n": 1}] * 3


async def test_psycopg_sync(dsn: str) -> None:
    with psycopg.connect(dsn, row_factory=dict_row) as conn:
        assert enqueue(conn, "work", {"50%": "%s :x"}, **OPTIONS).created
        assert [result.created for result in enqueue_many(conn, KEYED)] == [True, False]
        assert len(enqueue_many(conn, MANY)) == 3
    with psycopg.connect(dsn) as conn:
        enqueue(conn, "work")
        conn.rollback()

    await expect(dsn, 5)


async def test_psycopg_async(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        assert (await enqueue(conn, "work", **OPTIONS)).created
        assert [result.created for result in await enqueue_many(conn, KEYED)] == [True, False]
        assert len(await enqueue_many(conn, MANY)) == 3

    await expect(dsn, 5)


async def test_sqlalchemy_sync_connections_and_sessions(dsn: str) -> None:
    engine = sqlalchemy.create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as conn:
        assert enqueue(conn, "work", {"50%": "%s :x"}, **OPTIONS).created
        assert [result.created for result in enqueue_many(conn, KEYED)] == [True, False]
    with Session(engine) as session:
        assert len(enqueue_many(session, MANY)) == 3
        session.commit()
        enqueue(session, "work")
        session.rollback()
    engine.dispose()

    await expect(dsn, 5)


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_sqlalchemy_async_connections_and_sessions(dsn: str, driver: str) -> None:
    engine = create_async_engine(dsn.replace("postgresql://", f"postgresql+{driver}://"))
    async with engine.begin() as conn:
        assert (await enqueue(conn, "work", {"50%": "%s :x"}, **OPTIONS)).created
        assert [result.created for result in await enqueue_many(conn, KEYED)] == [True, False]
    async with AsyncSession(engine) as session:
        assert len(await enqueue_many(session, MANY)) == 3
        await session.commit()
        await enqueue(session, "work")
        await session.rollback()
    await engine.dispose()

    await expect(dsn, 5)


def test_a_connection_of_another_kind_is_an_error_that_says_which_are_known() -> None:
    with pytest.raises(InvalidArgument, match=r"conn is .*; it must be an asyncpg connection or pool"):
        enqueue(object(), "work")  # type: ignore[call-overload]


async def test_what_is_of_a_known_driver_but_no_connection_is_refused_too(dsn: str) -> None:
    engine = sqlalchemy.create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))
    async_engine = create_async_engine(dsn.replace("postgresql://", "postgresql+asyncpg://"))
    pool = asyncpg.create_pool(dsn, min_size=0)
    with psycopg.connect(dsn) as conn, conn.cursor() as cursor:
        for other in (cursor, engine, async_engine, pool.acquire()):
            with pytest.raises(InvalidArgument, match=r"conn is .*; it must be an asyncpg connection or pool"):
                enqueue(other, "work")  # type: ignore[call-overload]
    engine.dispose()
    await async_engine.dispose()

    await expect(dsn, 0)

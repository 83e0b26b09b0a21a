"""A worker whose connections each reach another session with every transaction."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from ostinato import Context, enqueue_many, job
from ostinato.settings import Settings
from ostinato_worker import Worker
from tests.postgres.conftest import Server
from tests.postgres.pgbouncer import bouncer, needs_pgbouncer

JOBS = 40
SESSIONS = 3


@pytest.fixture
def far_dsn(server: Server, dsn: str) -> Iterator[str]:
    """To the test's database, where all clients share a few sessions."""
    with bouncer(server, default_pool_size=str(SESSIONS)) as running:
        yield f"{running.dsn_for(dsn)}&pgbouncer=true"


@needs_pgbouncer
async def test_jobs_with_and_without_a_transaction_are_done_once(far_dsn: str, conn: Any) -> None:
    await conn.execute("create table shop (n int)")

    @job("sell", transaction=True)
    async def sell(n: dict[str, int], ctx: Context) -> None:
        await ctx.tx.execute("insert into shop values ($1)", n["n"])

    @job("mail")
    async def mail() -> None: ...

    await enqueue_many(conn, [sell.new({"n": n}) for n in range(JOBS)] + [mail.new() for _ in range(JOBS)])

    counts = await asyncio.wait_for(Worker(far_dsn, [sell, mail], concurrency=4).drain(), 30)

    assert counts == {"completed": 2 * JOBS}
    assert [row["n"] for row in await conn.fetch("select n from shop order by n")] == list(range(JOBS))


@needs_pgbouncer
async def test_jobs_that_hold_all_sessions_do_not_cost_the_lease(far_dsn: str, dsn: str, conn: Any) -> None:
    lease = timedelta(seconds=2)

    @job("long", transaction=True)
    async def long(ctx: Context) -> None:
        await ctx.tx.execute("select 1")
        await asyncio.sleep(1.5 * lease.total_seconds())

    await enqueue_many(conn, [long.new() for _ in range(SESSIONS)])

    worker = Worker(far_dsn, [long], concurrency=SESSIONS, settings=Settings(lease=lease, listen_dsn=dsn))
    await asyncio.wait_for(worker.drain(), 30)

    done = await conn.fetch("select attempt, state from ostinato.all_jobs")
    assert [tuple(row) for row in done] == [(1, "completed")] * SESSIONS

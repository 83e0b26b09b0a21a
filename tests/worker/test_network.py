"""A network that is cut without a word: nobody is told, and everybody has to find out in time."""

import asyncio
import time
from datetime import timedelta
from typing import Any

from ostinato import Context, enqueue_many, job
from ostinato.settings import Settings
from ostinato_worker import Worker
from tests.worker.proxy import network

LEASE = timedelta(seconds=2)
SETTINGS = Settings(lease=LEASE)


@job("work", transaction=True, max_attempts=20, backoff="50ms")
async def work(payload: dict[str, Any], ctx: Context) -> None:
    await ctx.tx.execute("insert into shop values ($1)", payload["n"])


async def done(conn: Any, jobs: int) -> None:
    async with asyncio.timeout(20):
        while await conn.fetchval("select count(*) from ostinato.job_history") < jobs:
            await asyncio.sleep(0.02)


async def test_connections_that_went_silent_are_given_up_and_nothing_is_lost_or_done_twice(dsn: str, conn: Any) -> None:
    await conn.execute("create table shop (n int)")
    async with network(dsn) as (between, through), Worker(through, [work], settings=SETTINGS):
        await enqueue_many(conn, [work.new({"n": n}) for n in range(20)])
        await done(conn, 20)

        between.cut()
        await enqueue_many(conn, [work.new({"n": n}) for n in range(20, 40)])
        await done(conn, 40)

    told = await conn.fetchrow("select count(*), count(distinct n) from shop")
    assert tuple(told) == (40, 40)


async def test_the_end_of_a_lease_is_told_in_time_whatever_a_renewal_waits_for(dsn: str, conn: Any) -> None:
    stopped = asyncio.Event()

    @job("wait")
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    await wait.enqueue(conn)
    async with network(dsn) as (between, through), Worker(through, [wait], settings=SETTINGS, grace="1s"):
        async with asyncio.timeout(10):
            while not await conn.fetchval("select count(*) from ostinato.jobs where state = 'running'"):
                await asyncio.sleep(0.02)
        between.closed = True  # from now on also new connections are taken, and not answered
        renewed = await conn.fetchval("select lease_expires_at from ostinato.workers where ended_at is null")
        async with asyncio.timeout(10):
            await stopped.wait()
        told = time.time()
        between.closed = False

    assert told < renewed.timestamp()

"""A server that has no connection left."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from ostinato import Context, enqueue_many, job
from ostinato.embedded import EmbeddedPostgres
from ostinato_worker import Worker
from ostinato_worker.sessions import FIRST
from tests.postgres.conftest import BINARIES, FAST, TEMPLATE, Server, database, make_template

HELD = FIRST + 1  # all that the worker opens before jobs need them, and the one that it registered on
MOST = HELD + 5  # besides it claims, records, listens and renews its lease, and the test has one
MORE = 3
JOBS = HELD + MORE


@pytest.fixture(scope="module")
def small(folder: Path) -> Iterator[Server]:
    settings = FAST | {"max_connections": str(MOST), "superuser_reserved_connections": "0"}
    with EmbeddedPostgres(folder / "small", bin_dir=BINARIES["wheel-18"], settings=settings) as embedded:
        make_template(embedded)
        yield embedded


@pytest.fixture
def small_dsn(small: Server) -> Iterator[str]:
    yield from database(small, TEMPLATE)


@pytest.fixture
async def taken() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def take_all(dsn: str, stack: AsyncExitStack) -> None:
    """Also those that a connection of another's leaves a moment later."""
    with pytest.raises(asyncpg.TooManyConnectionsError):
        while True:
            conn = await asyncpg.connect(dsn)
            stack.push_async_callback(conn.close)


def given_back(worker: Worker, jobs: int) -> Any:
    return lambda: worker._tally.others["work", "released", ""] >= jobs


async def until(true: Any) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("longest", [None, "50ms"])
async def test_transactional_jobs_wait_for_a_connection_in_their_slots_and_spend_no_attempt(
    small_dsn: str, taken: AsyncExitStack, longest: str | None
) -> None:
    may_end = asyncio.Event()

    @job("hold", transaction=True)
    async def hold(ctx: Context) -> None:
        await may_end.wait()

    @job("work", transaction=True, timeout=longest)
    async def work(ctx: Context) -> None: ...

    conn = await asyncpg.connect(small_dsn)
    loop = asyncio.get_running_loop()
    async with Worker(small_dsn, [hold, work], concurrency=JOBS) as worker:
        await until(lambda: worker._claimer._idle)
        await take_all(small_dsn, taken)
        await enqueue_many(conn, [hold.new(priority=1)] * HELD + [work.new()] * MORE)
        await until(given_back(worker, 4))
        began = loop.time()
        await until(given_back(worker, 8))
        took = loop.time() - began

        may_end.set()
        await taken.aclose()
        ends = await ended(conn)
    await conn.close()

    assert ends == [("completed", 1, None)] * JOBS
    # Four more, and not as many as the machine is able to: the wait has doubled each time.
    assert longest or took > 0.55


async def ended(conn: Any) -> list[Any]:
    async with asyncio.timeout(30):
        while await conn.fetchval("select count(*) from ostinato.jobs"):
            await asyncio.sleep(0.02)
    return [tuple(each) for each in await conn.fetch("select state, attempt, error_code from ostinato.all_jobs")]

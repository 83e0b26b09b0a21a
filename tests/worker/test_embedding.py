"""A worker inside another program, on its pool, beside its own work."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import asyncpg
import pytest

from ostinato import Context, InvalidArgument, enqueue_many, job, store
from ostinato.settings import Settings
from ostinato_worker import Worker


@job("work")
async def work(payload: dict[str, Any], ctx: Context) -> None:
    await asyncio.sleep(0)


async def done(conn: Any) -> None:
    async with asyncio.timeout(20):
        while await conn.fetchval("select count(*) from ostinato.jobs"):
            await asyncio.sleep(0.01)


async def test_a_worker_runs_on_a_pool_of_the_callers_own_and_leaves_it_open(dsn: str, conn: Any) -> None:
    async with asyncpg.create_pool(dsn, min_size=0, max_size=5) as pool:
        async with Worker(pool, [work]) as worker:
            await enqueue_many(pool, [work.new({"n": n}) for n in range(100)])
            await done(conn)
            (listed,) = await store.list_workers(conn)
            assert listed.id == worker.id

        assert await pool.fetchval("select 1") == 1
    assert await store.list_workers(conn) == []


async def test_two_workers_live_in_one_program(dsn: str, conn: Any) -> None:
    async with Worker(dsn, [work], concurrency=1) as one, Worker(dsn, [work], concurrency=1) as other:
        await enqueue_many(conn, [work.new({"n": n}) for n in range(50)])
        await done(conn)

    assert one.id != other.id


async def test_a_worker_may_be_stopped_and_used_again(dsn: str, conn: Any) -> None:
    worker = Worker(dsn, [work])
    for _ in range(2):
        await work.enqueue(conn, {"n": 1})
        running = asyncio.create_task(worker.run())
        await done(conn)
        worker.stop()
        await asyncio.wait_for(running, 10)

    assert await conn.fetchval("select count(*) from ostinato.job_history") == 2


@pytest.mark.parametrize("first", [Worker.run, Worker.drain, Worker.__aenter__])
@pytest.mark.parametrize("second", [Worker.run, Worker.drain, Worker.__aenter__])
async def test_a_worker_that_runs_is_not_begun_again(dsn: str, conn: Any, first: Any, second: Any) -> None:
    worker = Worker(dsn, [work])
    running = asyncio.create_task(first(worker))
    await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="this worker runs already: make another one"):
        await second(worker)

    worker.stop()
    await asyncio.wait_for(running, 10)
    if first is Worker.__aenter__:
        await worker.__aexit__()
    assert await store.list_workers(conn) == []
    assert await worker.drain() == {}


async def test_a_worker_that_was_begun_twice_loses_nobodys_work(dsn: str, conn: Any) -> None:
    worker = Worker(dsn, [work])
    running = asyncio.create_task(worker.run())
    while worker.condition.unready:
        await asyncio.sleep(0.01)

    with pytest.raises(RuntimeError, match="runs already"):
        await worker.run()

    await work.enqueue(conn, {"n": 1})
    await done(conn)
    worker.stop()
    await asyncio.wait_for(running, 10)
    assert await store.list_workers(conn) == []
    assert not [thread for thread in threading.enumerate() if "heart" in thread.name]


async def test_a_start_that_is_called_off_may_be_made_again(dsn: str, conn: Any) -> None:
    opened, opens = asyncio.Event(), [True, False]

    @asynccontextmanager
    async def state() -> AsyncIterator[None]:
        opened.set()
        if opens.pop(0):
            await asyncio.Event().wait()
        yield

    await work.enqueue(conn, {"n": 1})
    worker = Worker(dsn, [work], state=state)
    starting = asyncio.create_task(worker.drain())
    await opened.wait()
    worker.stop()

    assert await asyncio.wait_for(starting, 10) == {}
    assert await worker.drain() == {"completed": 1}


async def test_who_cancels_a_start_hears_of_it_also_if_it_was_called_off(dsn: str) -> None:
    opened = asyncio.Event()

    @asynccontextmanager
    async def state() -> AsyncIterator[None]:
        opened.set()
        await asyncio.Event().wait()
        yield

    worker = Worker(dsn, [work], state=state)
    starting = asyncio.create_task(worker.run())
    await opened.wait()
    worker.stop()
    starting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(starting, 10)


async def test_what_the_application_opens_is_closed_in_the_context_that_opened_it(dsn: str) -> None:
    name: ContextVar[str] = ContextVar("name")

    @asynccontextmanager
    async def state() -> AsyncIterator[None]:
        before = name.set("shop")
        yield
        name.reset(before)

    assert await Worker(dsn, [work], state=state).drain() == {}


async def test_a_worker_that_polls_alone_finds_everything_too(dsn: str, conn: Any) -> None:
    """As behind PgBouncer in transaction mode, where nobody can listen."""
    async with Worker(f"{dsn}&pgbouncer=true", [work]):
        await asyncio.sleep(0)
        await enqueue_many(conn, [work.new({"n": n}) for n in range(20)])
        await done(conn)


async def test_draining_says_what_became_of_how_many(dsn: str, conn: Any) -> None:
    @job("bad", backoff="1h")
    async def bad(payload: dict[str, Any]) -> None:
        raise ValueError(payload)

    await enqueue_many(conn, [work.new({"n": n}) for n in range(30)] + [bad.new({"n": n}) for n in range(3)])

    counts = await Worker(dsn, [work, bad], settings=Settings(max_attempts=2)).drain()

    assert counts == {"completed": 30, "retried": 3}


async def test_told_to_drain_it_finishes_what_it_runs_and_claims_nothing_more(dsn: str, conn: Any) -> None:
    started, free = asyncio.Event(), asyncio.Event()

    @job("slow")
    async def slow() -> None:
        started.set()
        await free.wait()

    await slow.enqueue(conn)
    async with Worker(dsn, [slow], concurrency=4, settings=Settings(lease=Settings().lease / 10)) as worker:
        await started.wait()
        assert worker.id is not None
        await store.drain_workers(conn, [worker.id])
        late = await slow.enqueue(conn)
        free.set()
        async with asyncio.timeout(20):
            while await conn.fetchval("select count(*) from ostinato.job_history") < 1:
                await asyncio.sleep(0.01)

    assert (await store.get_job(conn, late.id)).state == "pending"


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"concurrency": 0}, "concurrency is 0"),
        ({"queues": []}, r"queues is \[\]; it must name from 1"),
        ({"queues": ["-"]}, "queue is '-'"),
        ({"namespace": "No"}, "namespace is 'No'"),
        ({"timeout": "0s"}, "timeout is '0s'"),
        ({"grace": "later"}, "grace is 'later'"),
        ({"health_port": 99_999}, "health_port is 99999; it must be a whole number from 0 to 65,535"),
        ({"health_port": "8080"}, "health_port is '8080'"),
    ],
)
def test_an_option_that_breaks_a_rule_is_named(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidArgument, match=rule):
        Worker("postgresql://nobody@localhost/none", [work], **options)

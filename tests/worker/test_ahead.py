"""What a worker claims ahead of its slots, because its jobs are very short, is not lost to others for long."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ostinato import Context, NewJob, enqueue_many, job, store
from ostinato.lifecycle import State
from ostinato_worker import Worker
from ostinato_worker import worker as worker_module
from ostinato_worker.claimer import BATCH
from tests.worker.fleet import nothing_live, until, workers


class Line:
    """Very short jobs, one that takes long, and very short ones after it, of which the worker has claimed some."""

    def __init__(self) -> None:
        self.started, self.free = asyncio.Event(), asyncio.Event()

        @job("work")
        async def work(payload: dict[str, Any], ctx: Context) -> None:
            if payload["n"] == 2_000:
                self.started.set()
                await self.free.wait()

        self.handler = work

    async def enqueue(self, conn: Any) -> None:
        await enqueue_many(conn, [self.handler.new({"n": n}) for n in range(2_500)])


async def held(conn: Any, worker: Worker) -> int:
    count: int = await conn.fetchval("select count(*) from ostinato.jobs where worker_id = $1", worker.id)
    return count


async def until_ahead(conn: Any, worker: Worker) -> None:
    async with asyncio.timeout(20):
        while await held(conn, worker) == 1:
            await asyncio.sleep(0.01)


async def until_held(conn: Any, worker: Worker, jobs: int) -> None:
    async with asyncio.timeout(20):
        while await held(conn, worker) != jobs:
            await asyncio.sleep(0.01)


async def test_it_goes_to_whoever_is_idle_while_a_long_job_holds_up_its_turn(dsn: str, conn: Any) -> None:
    line = Line()
    await line.enqueue(conn)
    async with Worker(dsn, [line.handler], concurrency=1) as busy:
        await asyncio.wait_for(line.started.wait(), 20)
        await until_ahead(conn, busy)
        async with Worker(dsn, [line.handler], concurrency=1) as idle:
            async with asyncio.timeout(20):
                while await conn.fetchval("select count(*) from ostinato.jobs") > 1:
                    await asyncio.sleep(0.01)
            others = await conn.fetchval(
                "select count(*) from ostinato.job_history where worker_id = $1 and (payload ->> 'n')::int > 2000",
                idle.id,
            )
        line.free.set()

    assert others == 499


async def test_one_of_them_that_is_called_off_ends_without_its_turn(
    dsn: str, conn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "LONGEST_UNSTARTED", 3600)
    line = Line()
    await line.enqueue(conn)
    async with Worker(dsn, [line.handler], concurrency=1) as busy:
        await asyncio.wait_for(line.started.wait(), 20)
        await until_ahead(conn, busy)
        ahead = "select id from ostinato.jobs where state = 'running' and (payload ->> 'n')::int > 2000 limit 1"
        job_id = await conn.fetchval(ahead)
        await store.cancel(conn, job_id)
        async with asyncio.timeout(10):
            while (await store.get_job(conn, job_id)).state is not State.CANCELLED:
                await asyncio.sleep(0.01)
        assert not line.free.is_set()
        line.free.set()


async def test_it_is_given_back_at_once_when_the_worker_stops(
    dsn: str, conn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "LONGEST_UNSTARTED", 3600)
    line = Line()
    await line.enqueue(conn)
    worker = Worker(dsn, [line.handler], concurrency=1, grace="1h")
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(line.started.wait(), 20)
    await until_ahead(conn, worker)
    worker.stop()
    await until_held(conn, worker, 1)
    line.free.set()
    await running

    rows = await conn.fetch("select state, attempt, count(*) from ostinato.jobs group by 1, 2")
    assert [tuple(row) for row in rows] == [("pending", 0, 499)]


async def test_not_even_a_handler_that_blocks_the_event_loop_keeps_it(dsn: str, conn: Any, tmp_path: Path) -> None:
    await enqueue_many(conn, [NewJob("note", {"n": n}) for n in range(2_000)])
    (tmp_path / "other").mkdir()
    blocking = "select count(*) = 1 from ostinato.jobs where job_type = 'block' and state = 'running'"
    others_done = "select bool_or(job_type = 'block') and not bool_or(payload ? 'after') from ostinato.jobs"
    with workers(dsn, 1, tmp_path, concurrency=1) as (busy,):
        await until(lambda: nothing_live(conn))
        # It knows by now how short they are, and claims these together. Not more than one claim brings: what a blocked
        # event loop has not heard of, nobody there can give back.
        after = [NewJob("note", {"after": True})] * (BATCH - 1)
        await enqueue_many(conn, [NewJob("block", {"seconds": 10}), *after])
        await until(lambda: conn.fetchval(blocking))
        ahead = await conn.fetchval("select count(*) from ostinato.jobs where state = 'running'")
        with workers(dsn, 1, tmp_path / "other", concurrency=1):
            await until(lambda: conn.fetchval(others_done))
            await until(lambda: nothing_live(conn))

    assert ahead > 1
    assert busy.said.count("jobs that wait for it are given back") == 1
    rows = await conn.fetch("select state, attempt, count(*) from ostinato.job_history group by 1, 2")
    assert [tuple(row) for row in rows] == [("completed", 1, 2_000 + BATCH)]

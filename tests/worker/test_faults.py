"""Many processes, killed, stopped, cut off: every job is done, none twice where that is promised."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from ostinato import NewJob, enqueue_many
from tests.worker.fleet import leader, nothing_live, until, workers
from tests.worker.shop import SHOP

Connect = Callable[[], Awaitable[Any]]


@pytest.fixture
async def shop(conn: Any) -> Any:
    await conn.execute(SHOP)
    return conn


async def running(conn: Any) -> int:
    count: int = await conn.fetchval("select count(*) from ostinato.jobs where state = 'running'")
    return count


async def attempts_of(conn: Any) -> dict[int, int]:
    rows = await conn.fetch("select attempt, count(*) from ostinato.job_history group by attempt")
    return {row["attempt"]: row["count"] for row in rows}


async def test_200_jobs_over_8_processes_are_done_once_each_by_more_than_one(
    shop: Any, dsn: str, tmp_path: Path
) -> None:
    with workers(dsn, 8, tmp_path, concurrency=2):
        await until(lambda: shop.fetchval("select count(*) = 8 from ostinato.workers"))
        jobs = [NewJob("sell", {"n": n, "seconds": 0.02}) for n in range(200)]
        await enqueue_many(shop, jobs)
        await until(lambda: nothing_live(shop))

    done = await shop.fetchrow(
        "select count(*), count(distinct id), count(distinct worker_id) from ostinato.job_history"
    )
    told = await shop.fetchrow("select count(*), count(distinct job) from shop")
    assert (done[0], done[1], told[0], told[1]) == (200, 200, 200, 200)
    assert done[2] > 1
    assert await attempts_of(shop) == {1: 200}


async def test_kill_9_of_a_worker_gives_its_jobs_back_within_its_lease(shop: Any, dsn: str, tmp_path: Path) -> None:
    await enqueue_many(shop, [NewJob("wait", {"seconds": 600})] * 100)
    with workers(dsn, 1, tmp_path, concurrency=100) as (worker,):
        await until(lambda: shop.fetchval("select count(*) = 100 from ostinato.jobs where state = 'running'"))
        async with leader(dsn):
            worker.send(signal.SIGKILL)
            began = asyncio.get_running_loop().time()
            await until(lambda: shop.fetchval("select count(*) = 100 from ostinato.jobs where state = 'pending'"))
            took = asyncio.get_running_loop().time() - began

    found = await shop.fetch(
        "select distinct attempt, error_code, attempts -> 0 ->> 'code' as first from ostinato.jobs"
    )
    assert [tuple(row) for row in found] == [(1, "LEASE_EXPIRED", "LEASE_EXPIRED")]
    assert took < 3 + 2


@pytest.mark.parametrize(
    ("jobs", "payload"),
    [
        (8, {"seconds": 1}),
        # An event loop that does not even hear that the lease is lost: only the fence is left.
        (1, {"blocks": 2}),
    ],
)
async def test_a_worker_that_was_paused_past_its_lease_has_no_second_effect(
    shop: Any, dsn: str, tmp_path: Path, jobs: int, payload: dict[str, Any]
) -> None:
    await enqueue_many(shop, [NewJob("sell", payload | {"n": n}) for n in range(jobs)])
    are = f"select count(*) = {jobs} from"
    with workers(dsn, 1, tmp_path, lease="2s") as (late,):
        await until(lambda: shop.fetchval(f"{are} ostinato.jobs where state = 'running'"))
        # Inside its transactions: the rows are written, and not committed.
        await until(
            lambda: shop.fetchval(f"{are} pg_stat_activity where state = 'idle in transaction' and query like '%shop%'")
        )
        late.send(signal.SIGSTOP)
        async with leader(dsn):
            await until(lambda: shop.fetchval(f"{are} ostinato.jobs where state = 'pending'"))
            (tmp_path / "other").mkdir()
            with workers(dsn, 1, tmp_path / "other") as (other,):
                # It wakes up while another runs the same jobs: only the lease tells the two apart.
                await until(lambda: shop.fetchval(f"{are} ostinato.jobs where state = 'running'"))
                late.send(signal.SIGCONT)
                await until(lambda: nothing_live(shop))
                await until(lambda: _said(late, "lost the lease"))
                for each in (late, other):
                    each.send(signal.SIGTERM)
                    assert await each.ended() == 0

    told = await shop.fetch("select n, count(*) from shop group by n order by n")
    assert [tuple(row) for row in told] == [(n, 1) for n in range(jobs)]
    assert await attempts_of(shop) == {2: jobs}


async def _said(worker: Any, words: str) -> bool:
    return words in worker.said


async def test_a_blocked_event_loop_keeps_its_lease(shop: Any, dsn: str, tmp_path: Path) -> None:
    await enqueue_many(shop, [NewJob("block", {"seconds": 5})])
    with workers(dsn, 1, tmp_path, lease="2s") as (worker,):
        async with leader(dsn):
            await until(lambda: nothing_live(shop))

    assert await attempts_of(shop) == {1: 1}
    assert "lost" not in worker.said


async def test_a_process_that_is_truly_stuck_loses_its_lease_and_learns_of_it(
    shop: Any, dsn: str, tmp_path: Path
) -> None:
    await enqueue_many(shop, [NewJob("hold", {"seconds": 6})])
    with workers(dsn, 1, tmp_path, lease="2s") as (worker,):
        async with leader(dsn):
            await until(
                lambda: shop.fetchval("select state = 'pending' from ostinato.jobs where error_code is not null")
            )
            code = await shop.fetchval("select error_code from ostinato.jobs")
            # It comes back to itself, is somebody new, and does the job again.
            await until(lambda: nothing_live(shop))

    assert code == "LEASE_EXPIRED"
    assert await attempts_of(shop) == {2: 1}
    assert "lost the lease" in worker.said


@pytest.mark.parametrize(("seconds", "outcome"), [(0.3, "completed"), (600, "pending")])
async def test_sigterm_finishes_what_can_be_finished_and_gives_back_the_rest(
    shop: Any, dsn: str, tmp_path: Path, seconds: float, outcome: str
) -> None:
    await enqueue_many(shop, [NewJob("wait", {"seconds": seconds})] * 12)
    with workers(dsn, 1, tmp_path, grace="1s") as (worker,):
        await until(lambda: shop.fetchval("select count(*) = 8 from ostinato.jobs where state = 'running'"))
        worker.send(signal.SIGTERM)
        code = await worker.ended(10)

    assert code == 0
    rows = await shop.fetch(
        "select state, attempt, count(*) from ostinato.all_jobs group by state, attempt order by state"
    )
    completed, waiting = (8, 4) if outcome == "completed" else (0, 12)
    assert [tuple(row) for row in rows] == [
        *([("completed", 1, completed)] if completed else []),
        ("pending", 0, waiting),
    ]
    assert await shop.fetchval("select count(*) from ostinato.workers where ended_at is null") == 0


async def test_a_second_sigterm_ends_at_once_and_spends_no_attempt(shop: Any, dsn: str, tmp_path: Path) -> None:
    await enqueue_many(shop, [NewJob("wait", {"seconds": 600})] * 3)
    with workers(dsn, 1, tmp_path, grace="60s") as (worker,):
        await until(lambda: shop.fetchval("select count(*) = 3 from ostinato.jobs where state = 'running'"))
        worker.send(signal.SIGTERM)
        await until(lambda: _said(worker, "stops"))
        worker.send(signal.SIGTERM)
        code = await worker.ended(10)

    assert code == 0
    assert [tuple(row) for row in await shop.fetch("select distinct state, attempt from ostinato.jobs")] == [
        ("pending", 0)
    ]


async def test_a_server_that_crashes_three_times_under_load_loses_nothing(
    shop: Any, dsn: str, tmp_path: Path, connect: Connect
) -> None:
    jobs = [NewJob("sell", {"n": n, "seconds": 0.01}) for n in range(1_000)]
    jobs += [NewJob("note", {"n": n}, priority=-1) for n in range(2_000)]
    await enqueue_many(shop, jobs)
    done = "select count(*) from ostinato.job_history"

    with workers(dsn, 2, tmp_path):
        async with leader(dsn):
            for crash in range(3):
                await until(partial(asked, dsn, f"{done} having count(*) > {150 * (crash + 1)}"))
                # One killed backend makes the server end all others and recover, as after a crash.
                some_worker = "select pid from pg_stat_activity where application_name = 'ostinato' limit 1"
                os.kill(await until(partial(asked, dsn, some_worker)), signal.SIGKILL)
            await until(lambda: asked(dsn, "select not exists (select from ostinato.jobs)"))

    assert shop.is_closed()
    told = await asked(dsn, "select (count(*), count(distinct n)) = (1000, 1000) from shop")
    assert told
    assert await asked(dsn, "select count(distinct id) from ostinato.job_history where state = 'completed'") == 3_000


async def asked(dsn: str, question: str) -> Any:
    """On a connection that may be killed."""
    conn = await asyncpg.connect(dsn)
    try:
        return await conn.fetchval(question)
    finally:
        conn.terminate()


async def test_never_more_of_a_limited_type_run_than_may_and_no_slot_is_lost_to_a_kill_9(
    shop: Any, dsn: str, tmp_path: Path
) -> None:
    await shop.execute("create table seen (job_type text, running int)")
    jobs = [NewJob(f"limited{n % 5 + 1}", {"seconds": 0.002}) for n in range(2_000)]
    await enqueue_many(shop, jobs)

    with workers(dsn, 4, tmp_path) as (victim, *_):
        async with leader(dsn):
            await until(lambda: shop.fetchval("select count(*) > 300 from ostinato.job_history"))
            victim.send(signal.SIGKILL)
            await until(lambda: nothing_live(shop), 120)
            before = await most_running(shop)
            # What the killed one held is of use again: as many run as before, and no more.
            await shop.execute("truncate seen")
            await enqueue_many(shop, jobs[:500])
            await until(lambda: nothing_live(shop), 120)

    assert before == await most_running(shop) == {f"limited{n}": 3 for n in range(1, 6)}
    assert await shop.fetchval("select count(*) from ostinato.slots where job_id is not null") == 0
    assert await shop.fetchval("select count(*) from ostinato.job_history where state = 'completed'") == 2_500


async def most_running(conn: Any) -> dict[str, int]:
    rows = await conn.fetch("select job_type, max(running) as most from seen group by job_type")
    return {row["job_type"]: row["most"] for row in rows}

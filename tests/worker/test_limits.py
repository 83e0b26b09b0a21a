"""What limits hold through workers; that their SQL is right is shown in `tests/postgres`."""

import asyncio
from typing import Any

from ostinato import Context, NewJob, enqueue_many, job
from ostinato_worker import Worker


async def nothing_live(conn: Any) -> None:
    async with asyncio.timeout(30):
        while await conn.fetchval("select count(*) from ostinato.jobs"):
            await asyncio.sleep(0.01)


async def test_of_a_type_with_a_rate_no_more_start_than_may_and_others_are_not_held_up(dsn: str, conn: Any) -> None:
    @job("mail", rate="5/h")
    async def mail() -> None: ...

    @job("note")
    async def note() -> None: ...

    await enqueue_many(conn, [mail.new(priority=9)] * 20 + [note.new()] * 20)
    for _ in range(2):  # a worker that comes later has no bucket of its own
        await asyncio.wait_for(Worker(dsn, [mail, note]).drain(), 20)

    rows = await conn.fetch("select job_type, state, count(*) from ostinato.all_jobs group by 1, 2 order by 1, 2")
    assert [tuple(row) for row in rows] == [
        ("mail", "completed", 5),
        ("mail", "pending", 15),
        ("note", "completed", 20),
    ]


async def test_a_rate_fills_up_again_while_the_worker_waits(dsn: str, conn: Any) -> None:
    @job("mail", rate="10/s")
    async def mail() -> None: ...

    await enqueue_many(conn, [mail.new()] * 25)
    async with Worker(dsn, [mail]):
        await nothing_live(conn)

    took = await conn.fetchval("select max(started_at) - min(started_at) from ostinato.job_history")
    assert took.total_seconds() > 1.4  # 10 at once, 15 more at 10 a second


async def test_jobs_of_one_key_run_one_at_a_time_and_in_order_over_all_workers(dsn: str, conn: Any) -> None:
    running: dict[str, int] = {}
    most: list[int] = []
    order: dict[str, list[int]] = {"a": [], "b": []}
    side_by_side = asyncio.Event()

    @job("work")
    async def work(payload: dict[str, Any], ctx: Context) -> None:
        key = payload["key"]
        running[key] = running.get(key, 0) + 1
        most.append(running[key])
        order[key].append(payload["n"])
        if all(running.get(each) for each in order):
            side_by_side.set()
        await asyncio.sleep(0.002)
        running[key] -= 1

    jobs = [NewJob("work", {"key": key, "n": n}, concurrency_key=key) for n in range(30) for key in order]
    await enqueue_many(conn, jobs)
    async with Worker(dsn, [work], concurrency=4), Worker(dsn, [work], concurrency=4):
        await nothing_live(conn)

    assert max(most) == 1
    assert order == {"a": list(range(30)), "b": list(range(30))}
    assert side_by_side.is_set()

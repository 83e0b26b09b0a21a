"""No verdict is forgotten, whatever is under way when it is given."""

import asyncio
from typing import Any

from ostinato import NewJob, enqueue_many
from ostinato.database import Database
from ostinato.payload import Json
from ostinato.settings import Settings
from ostinato_worker.recorder import Recorder
from ostinato_worker.tally import Tally
from ostinato_worker.verdict import Completed, Released
from tests.postgres.actors import hire


async def test_a_job_that_is_given_back_while_another_one_is_being_given_back_is_given_back_too(
    dsn: str, conn: Any, connect: Any
) -> None:
    locker, tally = await connect(), Tally()
    settled: list[int] = []
    async with Database.open(dsn, Settings(), largest=3) as database:
        actor = await hire(conn)
        await enqueue_many(conn, [NewJob("work"), NewJob("work")])
        one, other = await actor.claim(2)
        recorder = Recorder(database, settled.append, tally, 30)
        recording = asyncio.create_task(recorder.run())

        transaction = locker.transaction()
        await transaction.start()
        await locker.execute("select from ostinato.jobs where id = $1 for update", one.id)
        recorder.put(one, Released())
        async with asyncio.timeout(10):
            while not await locker.fetchval("select count(*) from pg_locks where not granted"):
                await asyncio.sleep(0.005)
        recorder.put(other, Released())
        await transaction.rollback()
        await asyncio.wait_for(recorder.flushed(), 10)
        recording.cancel()

    assert await conn.fetchval("select count(*) from ostinato.jobs where state = 'pending'") == 2
    assert (sum(settled), recorder.unrecorded) == (2, set())


async def test_an_output_that_postgres_does_not_take_keeps_no_other_from_being_recorded(dsn: str, conn: Any) -> None:
    settled: list[int] = []
    async with Database.open(dsn, Settings(), largest=3) as database:
        actor = await hire(conn)
        await enqueue_many(conn, [NewJob("work") for _ in range(3)])
        jobs = await actor.claim(3)
        recorder = Recorder(database, settled.append, Tally(), 30)
        for claimed, output in zip(jobs, ("1", "no json", "3"), strict=True):
            recorder.put(claimed, Completed(Json(output)))
        recording = asyncio.create_task(recorder.run())
        await asyncio.wait_for(recorder.flushed(), 10)
        recording.cancel()

    found = await conn.fetch("select id, output from ostinato.job_history")
    assert {row["id"]: row["output"] for row in found} == {jobs[0].id: "1", jobs[2].id: "3"}
    assert (
        await conn.fetchval("select error_code from ostinato.dead_letters where id = $1", jobs[1].id)
        == "OUTPUT_INVALID"
    )
    assert sum(settled) == 3

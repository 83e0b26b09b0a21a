"""No verdict is forgotten, whatever is under way when it is given."""

import asyncio
from typing import Any

from ostinato import NewJob, enqueue_many
from ostinato.database import Database
from ostinato.settings import Settings
from ostinato_worker.recorder import Recorder
from ostinato_worker.tally import Tally
from ostinato_worker.verdict import Released
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

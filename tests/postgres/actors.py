"""Who acts in the tests: workers that claim through the store, and a look at where a job is."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from ostinato import store
from ostinato.lifecycle import State
from ostinato.store import Held, Outcome

LEASE = timedelta(minutes=5)
HOUR = timedelta(hours=1)


@dataclass
class Actor:
    """A registered worker on a connection of its own."""

    conn: Any
    id: UUID
    lanes: store.Lanes
    types: Collection[str]

    async def claim(self, limit: int = 1) -> list[store.Claimed]:
        return await store.claim(self.conn, self.id, self.lanes, types=self.types, limit=limit)

    async def claim_one(self) -> store.Claimed:
        """Looks at everything first, as a worker does after a notification."""
        self.look_again()
        (job,) = await self.claim(1)
        return job

    def look_again(self) -> None:
        self.lanes = store.Lanes(self.lanes.namespace, self.lanes.queues, self.lanes.limited)


async def hire(
    conn: Any,
    *types: str | store.JobType,
    queues: Sequence[str] = ("default",),
    namespace: str = "default",
    lease: timedelta = LEASE,
) -> Actor:
    served = [store.JobType(name=each) if isinstance(each, str) else each for each in types or ("work",)]
    worker = store.NewWorker(namespace=namespace, queues=queues, job_types=served)
    worker_id = await store.register_worker(conn, worker, lease=lease)
    limited = [each.name for each in served if each.limit]
    return Actor(conn, worker_id, store.Lanes(namespace, queues, limited), [each.served for each in served])


async def everything(conn: Any) -> list[tuple[Any, ...]]:
    """All that the rooms hold, to see whether anything changed."""
    rows = await conn.fetch("select all_jobs::text from ostinato.all_jobs order by id")
    return [tuple(row) for row in rows]


async def room_of(conn: Any, job_id: UUID) -> str:
    room: str = await conn.fetchval(
        """
        select 'jobs' from ostinato.jobs where id = $1
        union all select 'job_history' from ostinato.job_history where id = $1
        union all select 'dead_letters' from ostinato.dead_letters where id = $1
        """,
        job_id,
    )
    return room


async def until_blocked(watcher: Any, waiting: Any) -> None:
    """Until the other connection waits for a lock that this one holds."""
    async with asyncio.timeout(10):
        while watcher.get_server_pid() not in await watcher.fetchval(
            "select pg_blocking_pids($1)", waiting.get_server_pid()
        ):
            await asyncio.sleep(0.005)


async def attempt_move(conn: Any, move: str, held: Held) -> Outcome:
    """One of the fenced moves, by name, and what became of it."""
    match move:
        case "complete":
            return Outcome.LOST if await store.complete(conn, [held]) else Outcome.MOVED
        case "complete_one":
            return Outcome.MOVED if await store.complete_one(conn, held, {"n": 1}) else Outcome.LOST
        case "retry":
            return await store.retry(conn, held, delay=HOUR, code="X", message="boom")
        case "snooze":
            return await store.snooze(conn, held, delay=HOUR)
        case "release":
            if not await store.release(conn, [held]):
                return Outcome.LOST
            ended = (await store.get_job(conn, held.id)).state is State.CANCELLED
            return Outcome.CANCELLED if ended else Outcome.MOVED
        case "dead_letter":
            return await store.dead_letter(conn, held, code="X", message="boom")
        case "progress":
            return Outcome.MOVED if await store.progress(conn, held, {"n": 1}) else Outcome.LOST
        case _:
            return await store.stop(conn, held)

"""Claims jobs as slots become free, and a little ahead of them where they are very short.

It looks when it is told that something is ready, when there is room again, when the next job it knows of is due, and
now and then all the same, since whoever told it may not have been heard.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from random import Random
from typing import Any, Final
from uuid import UUID

from ostinato import store
from ostinato.database import Database
from ostinato.store import Claimed, Lanes
from ostinato_worker.pace import Pace

LOG: Final = logging.getLogger("ostinato.worker")
BATCH: Final = 500
POLL_SECONDS: Final = 1.6  # while nobody says anything; a job that is due in less than that may wait so long
BUSY_SECONDS: Final = 1.0  # so long without waiting, and nobody needs to tell it anything
CHANCE: Final = Random()


class Claimer:
    """`take` gets what was claimed, `known` are the jobs that are held here; `held` counts those not yet recorded."""

    def __init__(
        self,
        database: Database,
        pace: Pace,
        lanes: Lanes,
        types: Collection[str],
        *,
        take: Callable[[list[Claimed]], None],
        known: Callable[[], set[UUID]],
        stuck: Callable[[], int],
        patience: float,
    ) -> None:
        self._database = database
        self._pace = pace
        self._types = types
        self._take = take
        self._known = known
        self._stuck = stuck  # slots that attempts do not give back
        self._patience = patience  # a cut network is silent: then the next connection has to do
        self._claiming = asyncio.Lock()
        self._conn: Any = None
        self._unsure = False  # whether a claim was begun and not heard of
        self._somebody = asyncio.Event()
        self.lanes = lanes
        self.worker_id: UUID | None = None
        self.held = 0
        self.paused = False
        self.last_answer = 0.0  # when a claim last went well, by the loop's clock
        self.last_full = 0.0  # when there was last no room, hence nothing to ask for
        self._news = asyncio.Event()
        self._told = False
        self._idle = False
        self._waited_at = 0.0
        self._loop = asyncio.get_running_loop()

    def ready(self, queue: str, priority: int) -> None:
        """Somebody says that there is something."""
        self.lanes.notified(queue, priority)
        self._told = True
        self._news.set()

    def look(self) -> None:
        """There may be something, or room for it."""
        self._news.set()

    def freed(self) -> None:
        """There may be room again; not for every single job is it worth a claim."""
        if self.has_room or not self.held:
            self._news.set()

    def recorded(self, jobs: int) -> None:
        if not self.has_room:
            self.last_full = self._loop.time()
        self.held -= jobs
        self._pace.finished(jobs, self._loop.time())
        self.freed()

    async def run(self) -> None:
        """For ever, on a connection of its own: a pool's would be reset after each statement."""
        async with self._database.lend() as conn:
            self._conn = conn
            while True:
                await self._begin_round()
                room = self._room()
                if room and await self._claim(room) == room:
                    continue
                if room:
                    await self._wait_for_work()
                else:
                    await self._news.wait()
                    self.last_full = self._loop.time()

    @property
    def has_room(self) -> bool:
        return self._room() > 0

    async def drain(self) -> None:
        """Until nothing is due, and all that was is recorded."""
        async with self._database.lend() as conn:
            self._conn = conn
            while True:
                await self._begin_round()
                self.lanes.forget()
                room = self._room()
                if room and await self._claim(room):
                    continue
                if room and not self.held and self.worker_id is not None:
                    return
                await self._news.wait()

    def doubt(self) -> None:
        """It may hold more than it knows of."""
        self._unsure = True
        self._news.set()

    async def settled(self) -> None:
        """Until no claim is under way."""
        async with self._claiming:
            pass

    async def _begin_round(self) -> None:
        """Whatever a round awaits may see the lease lost: then there is no room, and the next round waits here."""
        await self._somebody.wait()
        if self._unsure:
            await self._give_back_unheard()
        self._news.clear()

    def _room(self) -> int:
        """Not for every single job that ends: where they are short, for half a window at a time."""
        if self.paused or self.worker_id is None:
            return 0
        window = self._pace.window
        room = window - self._stuck() - self.held
        ahead = window - self._pace.concurrency
        if room <= 0 or (ahead and room < min(ahead // 2, BATCH) and self.held > self._pace.concurrency):
            return 0
        return min(room, BATCH)

    async def _claim(self, room: int) -> int:
        async with self._claiming:
            jobs = await self._claim_as(self.worker_id, room) if self.worker_id else []
            if jobs:
                if not self.held:
                    self._pace.began(self._loop.time())
                self.held += len(jobs)
                self._take(jobs)
        # Not with every burst: each change writes, and a notification too many costs less.
        if len(jobs) == room and self._idle and self._loop.time() - self._waited_at > BUSY_SECONDS:
            await self._say_idle(False)
        return len(jobs)

    async def _claim_as(self, worker_id: UUID, room: int) -> list[Claimed]:
        hurry, self._told = self._told, False
        self._unsure = True
        async with asyncio.timeout(self._patience):
            jobs = await store.claim(self._conn, worker_id, self.lanes, types=self._types, limit=room, hurry=hurry)
        self._unsure = False
        self.last_answer = self._loop.time()
        if worker_id != self.worker_id:
            return []  # the lease was lost meanwhile: what it claimed is taken back from it
        return jobs

    async def _wait_for_work(self) -> None:
        if not self._idle:
            await self._say_idle(True)
            # And look at everything once more: something may have come before anybody could know that we wait.
            self.lanes.forget()
            return
        self._waited_at = self._loop.time()
        wait = POLL_SECONDS * CHANCE.uniform(0.9, 1.1)
        if not self._news.is_set() and (due := await self._next_due()) is not None:
            wait = min(wait, due)
        try:
            await asyncio.wait_for(self._news.wait(), wait)
        except TimeoutError:
            self.lanes.forget()

    async def _next_due(self) -> float | None:
        """In how many seconds the next job that waits in our lanes is due, by the database's clock."""
        lines = self.lanes.lines()
        if not lines:
            return None
        async with asyncio.timeout(self._patience):
            at, now = await store.next_run_at(self._conn, self.lanes.namespace, lines)
        return None if at is None else max(0.01, (at - now).total_seconds())

    async def _say_idle(self, idle: bool) -> None:
        if self.worker_id is None:
            return  # the lease was lost meanwhile
        async with asyncio.timeout(self._patience):
            await store.mark_idle(self._conn, self.worker_id, idle=idle)
        self._idle = idle

    def registered(self, worker_id: UUID | None) -> None:
        """None: it holds nothing any more, and claims nothing until it is somebody again."""
        self.worker_id = worker_id
        self._idle = self._unsure = False
        self._news.set()
        (self._somebody.set if worker_id else self._somebody.clear)()

    async def _give_back_unheard(self) -> None:
        """A claim whose answer never came may have been made: then nobody would run those jobs as long as we live."""
        if self.worker_id is None:
            return
        async with asyncio.timeout(self._patience):
            held = await store.find_claims(self._conn, self.worker_id)
        known = self._known()
        if unheard := [claim for claim in held if claim.id not in known]:
            LOG.warning("gives back %d jobs whose claim it did not hear of", len(unheard))
            await store.release(self._conn, unheard)
        self._unsure = False

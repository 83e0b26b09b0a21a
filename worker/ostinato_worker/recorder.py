"""Writes verdicts to the database: completions in batches, the others one by one, each fenced by its lease.

What cannot be written now is tried again until the database answers. A write that did arrive, though its answer did
not, is harmless: the second one finds the fence gone and asks what became of it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from ostinato import store
from ostinato.database import Database
from ostinato.failures import Code
from ostinato.payload import Json
from ostinato.postgres import UNWRITABLE
from ostinato.store import Claimed, Outcome
from ostinato_worker.tally import Tally
from ostinato_worker.verdict import Committed, Completed, Failed, Lost, Released, Snoozed, Stopped, Verdict

LOG: Final = logging.getLogger("ostinato.worker")
BATCH: Final = 500
NOW: Final = store.moves.NOW

Completion = tuple[Claimed, Json | None]


class Recorder:
    """`recorded` hears how many claims are settled: only then is their room free."""

    def __init__(self, database: Database, recorded: Callable[[int], None], tally: Tally, patience: float) -> None:
        self._database = database
        self._patience = patience  # a cut network is silent: then the next connection has to do
        self._recorded = recorded
        self._tally = tally
        self._completed: deque[Completion] = deque()
        self._others: deque[tuple[Claimed, Verdict]] = deque()
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._committed: list[Claimed] = []
        self._loop = asyncio.get_running_loop()
        self._conn: Any = None
        self.counts: dict[str, int] = {}

    @property
    def unrecorded(self) -> set[UUID]:
        return {job.id for job, _ in self._completed} | {job.id for job, _ in self._others}

    def put(self, job: Claimed, verdict: Verdict) -> None:
        if isinstance(verdict, Completed):
            self._completed.append((job, verdict.output))
        elif isinstance(verdict, Committed):  # nothing is left to write
            if not self._committed:
                self._loop.call_soon(self._count_committed)
            self._committed.append(job)
            return
        else:
            self._others.append((job, verdict))
        if not self._news.is_set():
            self._idle.clear()
            self._news.set()

    async def run(self) -> None:
        """For ever, on a connection of its own; what failed to be written is still there for the next call."""
        async with self._database.lend() as conn:
            self._conn = conn
            while True:
                await self._news.wait()
                self._news.clear()
                while self._completed or self._others:
                    async with asyncio.timeout(self._patience):
                        await (self._complete() if self._completed else self._record_others())
                self._idle.set()

    def _count_committed(self) -> None:
        """All that have ended in this turn of the event loop: making room for one more costs as much as for ten."""
        jobs, self._committed = self._committed, []
        self._tally.completed(jobs)
        self._count("completed", len(jobs))
        self._recorded(len(jobs))

    def given_back(self, jobs: list[Claimed]) -> None:
        """It is in the database."""
        self._count("released", len(jobs))
        for job in jobs:
            self._tally.ended(job, "released")
        self._recorded(len(jobs))

    async def flushed(self) -> None:
        await self._idle.wait()

    async def _complete(self, most: int = BATCH) -> None:
        batch = [self._completed[place] for place in range(min(most, len(self._completed)))]
        self._news.set()  # should this fail, whoever begins again finds something to do
        jobs = [job for job, _ in batch]
        outputs = [output for _, output in batch] if any(output is not None for _, output in batch) else []
        try:
            lost = await store.complete(self._conn, jobs, outputs)
        except UNWRITABLE as error:
            await self._complete_what_can_be(batch, error)
            return
        for _ in batch:
            self._completed.popleft()
        for job, _ in batch if lost else ():
            if job.id in lost:
                _say_lost(job, "its completion")
                self._tally.ended(job, "lost")
        self._tally.completed([job for job in jobs if job.id not in lost] if lost else jobs)
        self._count("completed", len(batch) - len(lost))
        self._count("lost", len(lost))
        self._recorded(len(batch))

    async def _complete_what_can_be(self, batch: list[Completion], error: Exception) -> None:
        """An output that Postgres cannot hold must not keep the others of its batch."""
        if len(batch) > 1:
            for _ in batch:
                await self._complete(1)
            return
        job, _ = self._completed.popleft()
        self._others.append((job, Failed(Code.OUTPUT_INVALID, _why_unwritable(error), permanent=True)))

    async def _record_others(self) -> None:
        """All that are released, and one other."""
        self._news.set()
        if released := [job for job, verdict in self._others if isinstance(verdict, Released)]:
            await store.release(self._conn, released)
            # Not all that are released: others may have been put there meanwhile.
            leases = {job.lease for job in released}
            self._others = deque(each for each in self._others if each[0].lease not in leases)
            self.given_back(released)
        if self._others and not isinstance(self._others[0][1], Released):
            job, verdict = self._others[0]
            name, outcome = await self._record_somehow(job, verdict)
            self._others.popleft()
            name = "cancelled" if outcome is Outcome.CANCELLED else name
            self._count(name, 1)
            self._tally.ended(job, name, verdict.code if isinstance(verdict, Failed) else "")
            self._recorded(1)

    async def _record_somehow(self, job: Claimed, verdict: Verdict) -> tuple[str, Outcome]:
        """One that can never be written must not hold up all that come after it."""
        try:
            return await self._record(job, verdict)
        except UNWRITABLE as error:
            LOG.error("job %s: its end cannot be written, so it is a dead letter: %s", job.id, error)
            return await self._record(job, Failed(Code.HANDLER_ERROR, _why_unwritable(error), permanent=True))

    async def _record(self, job: Claimed, verdict: Verdict) -> tuple[str, Outcome]:
        conn = self._conn
        match verdict:
            case Failed(code, message, _, permanent=True):
                name, outcome = "dead_lettered", await store.dead_letter(conn, job.held, code=code, message=message)
            case Failed(code, message, delay):
                name = "retried"
                outcome = await store.retry(conn, job.held, delay=delay or NOW, code=code, message=message)
            case Snoozed(delay, until):
                name, outcome = "snoozed", await store.snooze(conn, job.held, delay=delay, until=until)
            case Stopped(message):
                name, outcome = "cancelled", await store.stop(conn, job.held, message=message)
            case Lost():
                name, outcome = "lost", Outcome.LOST
            case _:
                raise AssertionError(f"{type(verdict).__name__} is not recorded one by one")
        if outcome is Outcome.LOST:
            return await self._settle_lost(job, verdict)
        return name, outcome

    async def _settle_lost(self, job: Claimed, verdict: Verdict) -> tuple[str, Outcome]:
        """A transaction whose commit broke off may have completed the job after all."""
        if not isinstance(verdict, Lost) and not await store.complete(self._conn, [job]):
            return "completed", Outcome.MOVED
        _say_lost(job, f"its end ({type(verdict).__name__.lower()})")
        return "lost", Outcome.LOST

    def _count(self, name: str, jobs: int) -> None:
        if jobs:
            self.counts[name] = self.counts.get(name, 0) + jobs


def _why_unwritable(error: Exception) -> str:
    return f"its end could not be recorded: {type(error).__name__}: {error}"


def _say_lost(job: Claimed, what: str) -> None:
    LOG.warning("job %s: the lease was lost, so %s does not count (attempt %d)", job.id, what, job.attempt)

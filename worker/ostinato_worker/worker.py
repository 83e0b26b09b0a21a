"""A worker: one process's share of the work. Wires the parts together.

claimer ──▶ crew (attempts) ──▶ recorder          heart: the lease, from a thread of its own
   ▲ listener: what is new, what is called off
"""

import asyncio
import logging
import os
import platform
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import ostinato
from ostinato import store
from ostinato.database import Database
from ostinato.dsn import Dsn
from ostinato.durations import Duration
from ostinato.errors import InvalidArgument
from ostinato.postgres import DATABASE_ERRORS, PostgresPool
from ostinato.settings import Settings
from ostinato.store import Claimed, Lanes, NewWorker, Renewal
from ostinato_worker.attempt import CANCELLED, LOST, SHUTDOWN
from ostinato_worker.claimer import Claimer
from ostinato_worker.condition import Condition
from ostinato_worker.crew import Crew
from ostinato_worker.farewell import Farewell
from ostinato_worker.health import Health
from ostinato_worker.heart import Heart
from ostinato_worker.isolation import Isolator
from ostinato_worker.life import Life
from ostinato_worker.line import WorkerLine
from ostinato_worker.listener import Listener
from ostinato_worker.metrics import Metrics
from ostinato_worker.options import Options
from ostinato_worker.pace import Pace
from ostinato_worker.pipeline import Pipeline
from ostinato_worker.recorder import Recorder
from ostinato_worker.registry import Jobs, Registry
from ostinato_worker.relief import Relief
from ostinato_worker.sessions import Sessions
from ostinato_worker.supervised import supervise
from ostinato_worker.tally import Tally
from ostinato_worker.transactions import Transactions
from ostinato_worker.verdict import Released

LOG: Final = logging.getLogger("ostinato.worker")
SPARE_CONNECTIONS: Final = 4  # to claim, to record, and for what handlers report
MOST_CONNECTIONS: Final = 50
LONGEST_UNSTARTED: Final = 0.5  # seconds that a job may be held without its turn coming

State = Callable[[], AbstractAsyncContextManager[Any]]


class Worker(Life):
    """`async with worker:` runs it beside other things; `run()` is that, until it is stopped or told to end."""

    def __init__(
        self,
        database: "str | Dsn | PostgresPool",
        jobs: Jobs = None,
        *,
        queues: Sequence[str] = ("default",),
        concurrency: int = 8,
        namespace: str | None = None,
        state: State | None = None,
        timeout: Duration | None = None,
        grace: Duration = "25s",
        stop_grace: Duration = "5s",
        pool: str | None = None,
        pod: str | None = None,
        health_port: int | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._where = database
        self._settings = settings or Settings.from_env()
        self._jobs = Registry.load(jobs)
        self._tally = Tally()
        self._state = state
        self._options = Options.read(
            self._settings,
            queues=queues,
            concurrency=concurrency,
            namespace=namespace,
            timeout=timeout,
            grace=grace,
            stop_grace=stop_grace,
            pool=pool,
            pod=pod,
            health_port=health_port,
        )
        super().__init__(Farewell(self._options))
        self._again: asyncio.Task[None] | None = None
        self._drains = False
        self._crew: Crew | None = None
        self._heart: Heart | None = None
        self.id: UUID | None = None

    async def drain(self) -> dict[str, int]:
        """Run what is due until nothing is left, or `stop()`; say what became of how many jobs."""
        self._check_unused()
        self._drains = True
        try:
            lived = await self._live(self._until_drained)
        finally:
            self._drains = False
        return dict(self._recorder.counts) if lived else {}

    async def _until_drained(self) -> None:
        draining = asyncio.create_task(supervise("draining", self._claimer.drain, self._tally.failed))
        stopping = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait((draining, stopping), return_when=asyncio.FIRST_COMPLETED)
            if draining.done():
                draining.result()
        finally:
            draining.cancel()
            stopping.cancel()
            await asyncio.gather(draining, stopping, return_exceptions=True)

    def now(self) -> datetime:
        """The database's time, as far as this worker knows it: what `ctx.now()` says."""
        return self._tally.now()

    async def _start(self, stack: AsyncExitStack) -> None:
        options = self._options
        if options.health_port is not None:
            # The first to begin and the last to end: probes want an answer also while the application starts.
            health = Health(lambda: self.condition, Metrics(self._tally, lambda: self.condition))
            await stack.enter_async_context(health.served(options.health_port))
        state = await stack.enter_async_context(self._state()) if self._state else None
        largest = min(MOST_CONNECTIONS, options.concurrency + SPARE_CONNECTIONS)
        self._database = await stack.enter_async_context(Database.open(self._where, self._settings, largest=largest))
        self._registry = self._jobs.opened(self._database.pool)
        self._tally.know(handler.name for handler in self._registry)
        patience = options.lease.total_seconds()
        self._line = WorkerLine(self._database, options.namespace, state, self._lost_one, self.now, patience)
        isolator = await stack.enter_async_context(self._isolating())
        sessions = Sessions(self._database, self._for_transactions(), patience)
        if any(handler.transaction for handler in self._registry):
            await sessions.open_first()
        transactions = Transactions(sessions, patience, more=self._more)
        stack.push_async_callback(transactions.close)
        self._transactions = transactions
        pipeline = Pipeline(self._registry, self._line, transactions, isolator, options)
        pace = Pace(options.concurrency)
        self._recorder = Recorder(self._database, self._recorded, self._tally, patience)
        crew = self._crew = Crew(
            pipeline,
            options.concurrency,
            stop_grace=options.stop_grace.total_seconds(),
            finished=self._recorder.put,
            freed=self._freed,
            tally=self._tally,
        )
        lanes = Lanes(options.namespace, options.queues)
        self._claimer = Claimer(
            self._database,
            pace,
            lanes,
            self._registry.served,
            take=self._take,
            known=self._known,
            stuck=lambda: crew.stuck,
            patience=patience,
        )
        self._pace = pace
        stack.callback(self._abandon)
        await store.make_partitions(self._database.pool)
        await stack.enter_async_context(self._loops())
        await self._register()

    def _for_transactions(self) -> int:
        """How many connections transactional jobs may use at once; the others are for the worker itself."""
        most = self._database.pool.get_max_size() - SPARE_CONNECTIONS
        if most < 1:
            rule = f"it must allow at least {SPARE_CONNECTIONS + 1} connections (max_size)"
            raise InvalidArgument("pool", self._database.pool.get_max_size(), rule)
        return min(most, self._options.concurrency)

    @asynccontextmanager
    async def _isolating(self) -> AsyncIterator[Isolator | None]:
        modules = self._registry.isolated
        if not modules:
            yield None
            return
        # Its ladder has two steps before the last: all of it before it would be given up.
        isolator = Isolator(modules, grace=self._options.stop_grace.total_seconds() / 3)
        await isolator.start()
        try:
            yield isolator
        finally:
            await isolator.close()

    @asynccontextmanager
    async def _loops(self) -> AsyncIterator[None]:
        loops = {
            "recording": self._recorder.run,
            "giving back": self._give_back,
            "watching transactions": self._transactions.watch,
        }
        if not self._drains:
            loops["claiming"] = self._claimer.run
        listener = Listener(
            self._database,
            self._options.namespace,
            ready=self._claimer.ready,
            cancelled=lambda job_id: self._working.stop(job_id, CANCELLED),
            connected=self._look_at_all,
        )
        if self._database.can_listen:
            loops["listening"] = listener.run
        tasks = [
            asyncio.create_task(supervise(name, work, self._tally.failed), name=f"ostinato {name}")
            for name, work in loops.items()
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _register(self) -> None:
        """Be somebody: a new worker each time, also after a lease was lost."""
        options = self._options
        job_types = self._registry.job_types(options.max_attempts, options.timeout)
        info = {"host": socket.gethostname(), "pid": os.getpid(), "python": platform.python_version()}
        new = NewWorker(
            namespace=options.namespace,
            queues=options.queues,
            job_types=job_types,
            concurrency=options.concurrency,
            pool=options.pool,
            pod=options.pod,
            info=info | {"ostinato": ostinato.__version__},
        )
        async with self._database.borrow(options.lease.total_seconds()) as conn:
            self._tally.clock(await store.clock(conn))
            self.id = worker_id = await store.register_worker(conn, new, lease=options.lease)
        self._claimer.lanes.limited = [each.name for each in job_types if each.limit]
        self._heart = Heart(
            self._database,
            worker_id,
            options.lease,
            renewed=self._renewed,
            failed=self._not_renewed,
            lost=lambda why: self._lost(worker_id, why),
            relief=Relief(self._working, self._recorder.given_back, self._claimer.doubt),
        )
        self._heart.start()
        LOG.info("worker %s serves %s of %s", worker_id, ", ".join(self._registry.served), ", ".join(options.queues))

    def _take(self, jobs: list[Claimed]) -> None:
        self._tally.claimed(jobs)
        if not self._stopped.is_set():
            self._working.take(jobs)
            return
        for job in jobs:  # the claim was under way
            self._recorder.put(job, Released())

    def _not_renewed(self, _: str) -> None:
        self._tally.late_renewals += 1

    def _renewed(self, renewal: Renewal) -> None:
        self._tally.renewals += 1
        lanes = self._claimer.lanes
        if set(lanes.limited) != set(renewal.limited):
            lanes.limited = renewal.limited
            lanes.forget()
        for job_id in renewal.cancelled:
            self._working.stop(job_id, CANCELLED)
        if self._claimer.worker_id is None:
            # Only now: with the first renewal it has also heard which of its types are limited.
            self._claimer.registered(self.id)
        if renewal.draining and not self._claimer.paused:
            LOG.info("told to drain: finishes what it runs, claims nothing more")
            self._claimer.paused = True

    def _lost(self, worker_id: UUID, why: str) -> None:
        if worker_id != self.id:
            return
        self._tally.leases_lost += 1
        LOG.error("worker %s lost the lease: %s; it stops what it runs, and begins anew", worker_id, why)
        self._claimer.registered(None)
        self._working.stop_all(LOST)
        if not self._stopped.is_set():
            self._again = asyncio.create_task(supervise("registering", self._register, self._tally.failed))

    def _lost_one(self, lease: int) -> None:
        self._working.lose(lease)

    @property
    def _working(self) -> Crew:
        assert self._crew is not None
        return self._crew

    def _more(self) -> bool:
        return bool(self._working.waiting)

    def _known(self) -> set[UUID]:
        return self._working.jobs | self._recorder.unrecorded

    def _recorded(self, jobs: int) -> None:
        self._claimer.recorded(jobs)

    def _freed(self) -> None:
        self._claimer.freed()

    def _look_at_all(self) -> None:
        self._claimer.lanes.forget()
        self._claimer.look()

    @property
    def condition(self) -> Condition:
        """How it is at this moment; `condition.unready` is None, or why it cannot claim."""
        stopping = self._stopping is None or self._stopping.is_set()
        if self.id is None:
            return Condition(stopping=stopping, slots=self._options.concurrency)
        claimer, now = self._claimer, asyncio.get_running_loop().time()
        return Condition(
            registered=claimer.worker_id is not None,
            stopping=stopping,
            draining=claimer.paused,
            holds_lease=self._heart is not None and self._heart.held,
            has_room=claimer.has_room and not self._drains,
            silent=now - max(claimer.last_answer, claimer.last_full) if claimer.last_answer else None,
            slots=self._options.concurrency,
            busy=self._working.busy,
            ahead=len(self._working.waiting),
        )

    async def _give_back(self) -> None:
        """What was claimed ahead and does not get its turn soon is for other workers."""
        while True:
            first = self._working.waiting[0] if self._working.waiting else None
            await asyncio.sleep(LONGEST_UNSTARTED)
            if first is not None and self._working.waiting and self._working.waiting[0] is first:
                self._pace.stalled()
                self._working.give_back()

    def _hurry(self) -> None:
        if self._crew is not None:  # else `async with` has not begun yet
            self._crew.give_up_all(SHUTDOWN)

    async def _end(self) -> None:
        await self._farewell.say(self._claimer, self._working, self._sign_off)

    async def _sign_off(self) -> None:
        await self._working.idle()
        await self._recorder.flushed()
        if self._heart:
            await self._heart.stop()
        if self.id is not None:
            with suppress(*DATABASE_ERRORS):
                async with self._database.borrow(self._options.lease.total_seconds()) as conn:
                    await store.retire_workers(conn, [self.id])

    def _abandon(self) -> None:
        """However it ends, also if its own end is cut off: nobody goes on in its name."""
        if self._again:
            self._again.cancel()
        if self._heart:
            self._heart.halt()
        self._working.abandon()

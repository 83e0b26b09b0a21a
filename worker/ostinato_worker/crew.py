"""Runs claimed jobs, at most `concurrency` of them at a time.

A **carrier** is a task that takes one job after the other. A handler that never waits is done in its first step, and
costs no task of its own. One that does wait keeps its carrier for itself, so that `asyncio.current_task()`, timeouts
and cancellation are its own, and another carrier goes on; once it is free again, it looks whether one does. Each
attempt has a copy of the context variables.
"""

import asyncio
import contextvars
import logging
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Generator
from time import perf_counter
from typing import Any, Final
from uuid import UUID

from ostinato.store import Claimed
from ostinato_worker.attempt import LOST, TIMEOUT, Attempt
from ostinato_worker.judge import judge
from ostinato_worker.pipeline import Pipeline
from ostinato_worker.tally import Tally
from ostinato_worker.verdict import Lost, Released, Verdict

LOG: Final = logging.getLogger("ostinato.worker")
BREATH: Final = 0.002  # seconds that a carrier may keep the event loop for

Finished = Callable[[Claimed, Verdict], None]


class Rest:
    """The rest of a coroutine whose first step has been taken, in the context that it was taken in."""

    def __init__(self, work: Coroutine[Any, Any, Verdict], context: contextvars.Context, waits_for: Any) -> None:
        self._work = work
        self._context = context
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Verdict]:
        waits_for = self._waits_for
        while True:
            try:
                try:
                    answer = yield waits_for
                except BaseException as error:
                    waits_for = self._context.run(self._work.throw, error)
                else:
                    waits_for = self._context.run(self._work.send, answer)
            except StopIteration as done:
                verdict: Verdict = done.value
                return verdict


class Crew:
    """`finished` hears of every verdict, once; `freed` that there is room again."""

    def __init__(
        self,
        pipeline: Pipeline,
        concurrency: int,
        *,
        stop_grace: float,
        finished: Finished,
        freed: Callable[[], None],
        tally: Tally,
    ) -> None:
        self.concurrency = concurrency
        self.waiting: deque[Claimed] = deque()
        # By lease: a job may come back to us while its last attempt, of an older lease, does not end.
        self.running: dict[int, Attempt] = {}
        self.busy = 0  # slots in use, also by attempts whose verdict is given but that do not end
        self._pipeline = pipeline
        self._stop_grace = stop_grace
        self._finished = finished
        self._freed = freed
        self._tally = tally
        self._carriers: set[asyncio.Task[None]] = set()
        self._carrying = False
        self.frozen = False  # what waits is being given back, from another thread
        self._still = asyncio.Event()
        self._still.set()
        self._loop = asyncio.get_running_loop()

    def take(self, jobs: list[Claimed]) -> None:
        self.waiting.extend(jobs)
        self._still.clear()
        self._carry_on()

    @property
    def jobs(self) -> set[UUID]:
        return {job.id for job in self.waiting} | {attempt.job.id for attempt in self.running.values()}

    @property
    def stuck(self) -> int:
        """Slots of attempts whose verdict is given, but that do not end."""
        return self.busy - len(self.running)

    def give_back(self) -> None:
        """What has not begun."""
        self._drop(Released())

    def freeze(self) -> list[Claimed]:
        """From another thread, while the event loop is blocked: what has not begun, and does not begin until `thaw`.

        The race: the loop may go on at any moment. A carrier looks at the flag after it has taken a job: either it sees
        the flag and puts the job back, or it had taken the job before we look.
        """
        self.frozen = True
        return list(self.waiting)

    def thaw(self, gone: Collection[int]) -> list[Claimed]:
        """Go on, without those whose leases are gone; they come back, if nobody else has ended them meanwhile."""
        self.frozen = False
        taken = [job for job in self.waiting if job.lease in gone]
        self.waiting = deque(job for job in self.waiting if job.lease not in gone)
        self._carry_on()
        self._look_whether_still()
        return taken

    async def idle(self) -> None:
        """Until nothing waits or runs."""
        await self._still.wait()

    def stop(self, job_id: UUID, reason: str) -> None:
        """Ask one to end; one that has not begun ends at once."""
        for attempt in [each for each in self.running.values() if each.job.id == job_id]:
            self._stop(attempt, reason)
        for job in [each for each in self.waiting if each.id == job_id]:
            self.waiting.remove(job)
            self._finished(job, Released())
        self._look_whether_still()

    def lose(self, lease: int) -> None:
        """This claim is not ours any more."""
        if attempt := self.running.get(lease):
            self._stop(attempt, LOST)

    def stop_all(self, reason: str) -> None:
        self._drop(Lost() if reason == LOST else Released())
        for attempt in list(self.running.values()):
            self._stop(attempt, reason)

    def give_up_all(self, reason: str) -> None:
        """At once, whether they stop or not."""
        self.stop_all(reason)
        for attempt in list(self.running.values()):
            self._call_later(attempt, 0.1, self._give_up, reason)

    def abandon(self) -> None:
        """Nobody waits for them any more: the worker is being torn down."""
        self.waiting.clear()
        for carrier in self._carriers:
            carrier.cancel()

    def _drop(self, verdict: Verdict) -> None:
        while self.waiting:
            self._finished(self.waiting.pop(), verdict)
        self._look_whether_still()

    def _look_whether_still(self) -> None:
        if self.waiting or self.running or self._carrying:
            self._still.clear()
        else:
            self._still.set()

    def _carry_on(self) -> None:
        """One carrier at a time looks for the next job; whoever is kept by one is no longer looking."""
        if not self._carrying and self.waiting and self.busy < self.concurrency and not self.frozen:
            self._carrying = True
            carrier = self._loop.create_task(self._carry(), name="ostinato-carrier")
            self._carriers.add(carrier)
            carrier.add_done_callback(self._gone)

    def _gone(self, carrier: "asyncio.Task[None]") -> None:
        """Whatever ended one, a handler's stray cancel or a mistake of ours: the others go on."""
        self._carriers.discard(carrier)
        if not carrier.cancelled() and (error := carrier.exception()):
            LOG.critical("an attempt went wrong and has no verdict", exc_info=error)
        elif not carrier.cancelled():
            return
        self._carrying = False
        self._carry_on()

    async def _carry(self) -> None:
        breath = perf_counter() + BREATH
        me = asyncio.current_task()
        assert me is not None
        while self.waiting and self.busy < self.concurrency:
            job = self.waiting.popleft()
            if self.frozen:
                self.waiting.appendleft(job)
                break
            attempt = self._pipeline.resolve(job)
            self._tally.began(job, attempt.began)
            work, context = self._pipeline.run(attempt), contextvars.copy_context()
            try:
                waits_for = context.run(work.send, None)
            except StopIteration as done:
                now = perf_counter()
                self._tally.tried(job.job_type, now - attempt.began)
                self._finished(job, done.value)
                if me.cancelling():
                    break  # a handler that cancelled its own task must not hit the next one
                if now > breath:
                    await asyncio.sleep(0)
                    breath = perf_counter() + BREATH
                continue
            # Another task for the next job: what the handler has left behind may cancel the one that it ran in.
            await self._stay_with(attempt, Rest(work, context, waits_for), me)
            self._carry_on()
            return
        self._carrying = False
        self._carry_on()
        self._look_whether_still()

    async def _stay_with(self, attempt: Attempt, rest: Rest, me: "asyncio.Task[Any]") -> None:
        self._carrying = False
        attempt.task = me
        self.running[attempt.job.lease] = attempt
        self.busy += 1
        if attempt.timeout is not None:
            self._call_later(attempt, attempt.timeout.total_seconds(), self._stop, TIMEOUT)
        self._carry_on()
        try:
            verdict = await rest
        finally:
            self.busy -= 1
            for timer in attempt.timers:
                timer.cancel()
        self._give(attempt, verdict)
        if attempt.late:
            self._freed()

    def _stop(self, attempt: Attempt, reason: str) -> None:
        if not attempt.stoppable:
            return
        attempt.stop(reason)
        self._call_later(attempt, self._stop_grace, self._give_up, reason)

    def _give_up(self, attempt: Attempt, reason: str) -> None:
        """It was told to stop and does not: its verdict is given without it, though it keeps its slot."""
        if attempt.late or attempt.returned or attempt.job.lease not in self.running:
            return
        name, job_id = attempt.job.job_type, attempt.job.id
        LOG.error("job %s (%s) does not stop though it was told to (%s): it keeps a slot", job_id, name, reason)
        self._give(attempt, attempt.verdict or judge(attempt, asyncio.CancelledError()))
        attempt.late = True

    def _give(self, attempt: Attempt, verdict: Verdict) -> None:
        if not attempt.late:
            self.running.pop(attempt.job.lease, None)
            self._tally.tried(attempt.job.job_type, perf_counter() - attempt.began)
            self._finished(attempt.job, verdict)
            self._look_whether_still()

    def _call_later(self, attempt: Attempt, seconds: float, act: Callable[[Attempt, str], None], reason: str) -> None:
        attempt.timers.append(self._loop.call_later(seconds, act, attempt, reason))

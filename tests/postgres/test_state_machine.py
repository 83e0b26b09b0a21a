"""A model beside the store, both driven through random sequences of all moves: what the rooms hold must agree."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ostinato import enqueue, store
from ostinato.lifecycle import BY_NAME, LIVE, WAITING, State
from ostinato.store import Held, Outcome
from tests.postgres.actors import Actor, attempt_move, hire

MAX_ATTEMPTS, POISON = 4, 3
WORKERS = st.sampled_from([0, 1])


@dataclass
class Model:
    """What a job should be. `held` is its worker's fence while it runs."""

    priority: int
    place: int
    state: State = State.PENDING
    due: bool = True
    attempt: int = 0
    codes: list[str] = field(default_factory=list)
    held: Held | None = None
    worker: int | None = None
    asked: bool = False

    def move(self, name: str) -> None:
        assert self.state in BY_NAME[name].sources, f"{name} from {self.state}"
        self.state = BY_NAME[name].target
        if self.state is not State.RUNNING:
            self.held = self.worker = None


class Jobs(RuleBasedStateMachine):
    dsn: str

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.conn = self.run(asyncpg.connect(self.dsn))
        self.run(
            self.conn.execute("truncate ostinato.jobs, ostinato.job_history, ostinato.dead_letters, ostinato.workers")
        )
        self.actors: list[Actor] = [self.run(hire(self.conn)) for _ in range(2)]
        self.jobs: dict[UUID, Model] = {}
        self.spent: list[Held] = []
        self.completed: set[Held] = set()
        # Something to do for every rule from the first step on.
        for priority in (0, 0, 1, 1):
            self.enqueue(priority, due=True)
        self.claim(0, 2)
        self.claim(1, 1)

    def teardown(self) -> None:
        self.run(self.conn.close())
        self.runner.close()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def running(self, worker: int) -> list[UUID]:
        return [job_id for job_id, job in self.jobs.items() if job.worker == worker]

    @rule(priority=st.integers(-1, 1), due=st.booleans())
    def enqueue(self, priority: int, due: bool) -> None:
        async def call() -> Any:
            return await enqueue(self.conn, "work", priority=priority, delay="0s" if due else "1h")

        result = self.run(call())
        self.jobs[result.id] = Model(priority, len(self.jobs), due=due)

    @rule(worker=WORKERS, limit=st.integers(1, 3))
    def claim(self, worker: int, limit: int) -> None:
        actor = self.actors[worker]
        actor.look_again()
        ready = [(-job.priority, job_id) for job_id, job in self.jobs.items() if job.state in WAITING and job.due]

        claimed = self.run(actor.claim(limit))

        # Redriven, snoozed and recovered jobs are due later than their id says, so only priorities are compared.
        assert len(claimed) == min(limit, len(ready))
        assert [-job.priority for job in claimed] == [urgency for urgency, _ in sorted(ready)][:limit]
        for job in claimed:
            model = self.jobs[job.id]
            model.move("claim")
            model.attempt += 1
            model.held, model.worker = job.held, worker
            assert job.attempt == model.attempt

    @precondition(lambda self: any(self.running(worker) for worker in (0, 1)))
    @rule(
        data=st.data(),
        move=st.sampled_from(["complete", "retry", "snooze", "release", "dead_letter", "stop", "progress"]),
    )
    def finish(self, data: st.DataObject, move: str) -> None:
        job_id = data.draw(st.sampled_from([*self.running(0), *self.running(1)]))
        job = self.jobs[job_id]
        assert job.held is not None
        held, asked = job.held, job.asked

        outcome = self.run(attempt_move(self.conn, move, held))

        if move == "progress" or (move == "stop" and not asked):
            assert outcome is (Outcome.LOST if move == "stop" else Outcome.MOVED)
            return
        self.spent.append(held)
        if asked and move != "complete":
            assert outcome is Outcome.CANCELLED
            job.move("stop")
            return
        assert outcome is Outcome.MOVED
        if move == "complete":
            self.completed.add(held)
        job.move(move)
        if move in ("snooze", "release"):
            job.attempt -= 1
        if move in ("retry", "dead_letter"):
            job.codes.append("X")
        if move in ("retry", "snooze"):
            job.due = False

    @precondition(lambda self: self.spent)
    @rule(
        data=st.data(),
        move=st.sampled_from(["complete", "retry", "snooze", "release", "dead_letter", "stop", "progress"]),
    )
    def come_late(self, data: st.DataObject, move: str) -> None:
        held = data.draw(st.sampled_from(self.spent))

        # Completing again what this very claim has completed is no loss: a worker may not have heard the answer.
        again = move == "complete" and held in self.completed
        assert self.run(attempt_move(self.conn, move, held)) is (Outcome.MOVED if again else Outcome.LOST)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job_id = data.draw(st.sampled_from(list(self.jobs)))
        job = self.jobs[job_id]

        outcome = self.run(store.cancel(self.conn, job_id))

        if job.state in WAITING:
            assert outcome == "cancelled"
            job.move("cancel")
        elif job.state is State.RUNNING:
            assert outcome == "asked"
            job.asked = True
        else:
            assert outcome == "finished"

    @precondition(lambda self: any(job.state in WAITING for job in self.jobs.values()))
    @rule(data=st.data())
    def hasten(self, data: st.DataObject) -> None:
        job_id = data.draw(st.sampled_from([key for key, job in self.jobs.items() if job.state in WAITING]))

        self.run(store.hasten(self.conn, job_id))

        self.jobs[job_id].move("hasten")
        self.jobs[job_id].due = True

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), reset=st.booleans())
    def redrive(self, data: st.DataObject, reset: bool) -> None:
        job_id = data.draw(st.sampled_from(list(self.jobs)))
        job = self.jobs[job_id]

        moved = self.run(store.redrive(self.conn, [job_id], reset_attempts=reset))

        assert moved == ({job_id} if job.state is State.DEAD_LETTERED else set())
        if moved:
            job.move("redrive")
            job.due = True
            job.attempt = 0 if reset else job.attempt

    @rule(worker=WORKERS)
    def crash_and_recover(self, worker: int) -> None:
        crashed = [self.jobs[job_id] for job_id in self.running(worker)]
        self.run(store.retire_workers(self.conn, [self.actors[worker].id]))

        recovered = self.run(store.recover(self.conn, max_attempts=MAX_ATTEMPTS, poison=POISON))

        self.actors[worker] = self.run(hire(self.conn))
        for job in crashed:
            assert job.held is not None
            self.spent.append(job.held)
            if job.asked:
                job.move("stop")
                continue
            since_reset = job.codes[max(0, len(job.codes) - (job.attempt - 1)) :]
            job.codes.append("LEASE_EXPIRED")
            doomed = job.attempt >= MAX_ATTEMPTS or since_reset.count("LEASE_EXPIRED") + 1 >= POISON
            job.move("dead_letter" if doomed else "recover")
            job.due = True
        ends = [job.state for job in crashed]
        counted = (ends.count(State.PENDING), ends.count(State.DEAD_LETTERED), ends.count(State.CANCELLED))
        assert (recovered.returned, recovered.buried, recovered.cancelled) == counted

    @invariant()
    def the_rooms_hold_what_the_model_says(self) -> None:
        if not hasattr(self, "conn"):
            return
        found = {job.id: job for job in self.run(store.list_jobs(self.conn, limit=1000))}
        assert set(found) == set(self.jobs)
        for job_id, model in self.jobs.items():
            job = found[job_id]
            assert (job.state, job.attempt) == (model.state, model.attempt)
            assert [failed.code for failed in job.attempts] == model.codes
            assert (job.lease if job.state is State.RUNNING else None) == (model.held.lease if model.held else None)
            assert (job.finished_at is None) == (job.state in LIVE)


def test_store_and_model_agree_after_any_sequence_of_moves(dsn: str) -> None:
    class OnThisServer(Jobs):
        pass

    OnThisServer.dsn = dsn
    run_state_machine_as_test(
        OnThisServer,
        settings=settings(
            max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )

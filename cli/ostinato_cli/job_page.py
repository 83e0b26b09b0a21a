"""One job for somebody on call: what it is, how it is, what went wrong, and what can be done next."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import click

from ostinato.durations import format_duration
from ostinato.lifecycle import State
from ostinato.store import Attempt, Job, Worker
from ostinato_cli.ages import age, at
from ostinato_cli.table import plain, printable

WIDTH: Final = 12
INDENT: Final = " " * WIDTH


@dataclass(frozen=True, slots=True)
class JobPage:
    job: Job
    now: datetime
    workers: dict[UUID, Worker]
    max_attempts: int

    def show(self) -> None:
        click.echo(printable("\n".join(self._lines())))

    def _lines(self) -> Iterator[str]:
        job = self.job
        yield _line("Job", job.id)
        version = "" if job.job_version == 1 else f", version {job.job_version}"
        yield _line("Type", f"{job.job_type}{version}")
        yield _line("Queue", f"{job.namespace}/{job.queue}, priority {job.priority}")
        yield _line("State", self._state())
        if job.worker_id:
            yield _line("Worker", self._worker(job.worker_id))
        yield _line("Attempts", f"{job.attempt} of {self.max_attempts}")
        yield from self._times()
        yield from self._keys()
        if job.error_code:
            yield _line("Error", f"{job.error_code}: {_indented(job.error_message or '')}")
        yield from self._values()
        yield from self._attempts()
        yield from ["", "What you can do", *(f"  {line}" for line in self._next())]

    def _state(self) -> str:
        job, now = self.job, self.now
        if job.state is State.RUNNING:
            asked = f", asked to stop {age(job.cancel_requested_at, now)} ago" if job.cancel_requested_at else ""
            return f"running for {age(job.started_at, now)}{asked}"
        if job.state is State.DEAD_LETTERED:
            return f"dead-lettered {age(job.finished_at, now)} ago: not tried again until a person says so"
        if job.finished_at:
            return f"{job.state} {age(job.finished_at, now)} ago"
        waits = "waits for its time" if job.run_at > now else f"ready for {age(job.run_at, now)}, waits for a worker"
        return f"{job.state}: {waits}" + (" to try it again" if job.attempt else "")

    def _worker(self, worker_id: UUID) -> str:
        worker = self.workers.get(worker_id)
        if worker is None:
            return f"{worker_id} (no longer known)"
        where = [f"pod {worker.pod}"] if worker.pod else []
        where += [f"pool {worker.pool}"] if worker.pool else []
        where += [f"ended {age(worker.ended_at, self.now)} ago"] if worker.ended_at else []
        if not worker.ended_at and worker.lease_expires_at < self.now:
            where.append(f"silent: its lease ran out {age(worker.lease_expires_at, self.now)} ago")
        return f"{worker_id} ({', '.join(where)})" if where else str(worker_id)

    def _times(self) -> Iterator[str]:
        job, now = self.job, self.now
        yield _line("Created", at(job.created_at, now))
        if job.started_at:
            yield _line("Started", at(job.started_at, now))
        if job.finished_at:
            yield _line("Finished", at(job.finished_at, now))
        if job.state in (State.PENDING, State.RETRYING):
            yield _line("Next run", at(job.run_at, now))
        if job.timeout:
            yield _line("Timeout", format_duration(job.timeout))

    def _keys(self) -> Iterator[str]:
        names = {"Dedup key": self.job.dedup_key, "One at once": self.job.concurrency_key}
        names |= {"Schedule": str(self.job.schedule_id) if self.job.schedule_id else None}
        return (_line(name, plain(key)) for name, key in names.items() if key)

    def _values(self) -> Iterator[str]:
        job = self.job
        values = {"Payload": job.payload, "Context": job.context, "Progress": job.progress, "Output": job.output}
        return (_line(name, _json(value)) for name, value in values.items() if value is not None)

    def _attempts(self) -> Iterator[str]:
        if self.job.attempts:
            yield from ["", "Failed attempts"]
        for attempt in self.job.attempts:
            yield from self._attempt(attempt)

    def _attempt(self, attempt: Attempt) -> Iterator[str]:
        lasted = f", after {age(attempt.started, attempt.finished)}" if attempt.started else ""
        yield f"  {attempt.attempt}.  {at(attempt.finished, self.now)}{lasted}   {attempt.code}"
        if attempt.message:
            yield f"      {_indented(attempt.message, '      ')}"
        if attempt.worker:
            yield f"      on worker {self._worker(attempt.worker)}"

    def _next(self) -> list[str]:
        job = self.job
        cancel, retry = f"ostinato jobs cancel {job.id}", f"ostinato jobs retry {job.id}"
        if job.state is State.RUNNING:
            return [f"{cancel}    ask its worker to stop it"]
        if job.state is State.DEAD_LETTERED:
            again = f"ostinato dead-letters retry {job.id}"
            return [f"{again}    try it once more", f"{again} --reset-attempts    with all its attempts"]
        if job.finished_at:
            return [f"{enqueue_again(job)}    do the same again"]
        return [f"{retry}    run it now" if job.run_at > self.now else "wait: it is ready", f"{cancel}    call it off"]


def enqueue_again(job: Job) -> str:
    queue = "" if job.queue == "default" else f" --queue {shlex.quote(job.queue)}"
    version = "" if job.job_version == 1 else f" --job-version {job.job_version}"
    payload = shlex.quote(json.dumps(job.payload))
    return f"ostinato enqueue {shlex.quote(job.job_type)} -n {job.namespace}{queue}{version} --payload {payload}"


def _line(name: str, value: object) -> str:
    return f"{name + ':':{WIDTH}}{value}"


def _indented(text: str, indent: str = INDENT) -> str:
    return f"\n{indent}".join(plain(line) for line in text.splitlines())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\n", f"\n{INDENT}")

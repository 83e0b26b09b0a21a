"""What the store gives back."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Self
from uuid import UUID

from pydantic_core import from_json

from ostinato.lifecycle import State


class Held(NamedTuple):
    """One claim of one job: the fence that every write to a running job names."""

    id: UUID
    lease: int


class Outcome(StrEnum):
    """What became of a fenced move."""

    MOVED = "moved"
    CANCELLED = "cancelled"  # a person had asked to stop it, so it ended as cancelled instead
    LOST = "lost"  # the lease was lost: nothing was changed


class Cancellation(StrEnum):
    CANCELLED = "cancelled"
    ASKED = "asked"
    FINISHED = "finished"


class Claimed(NamedTuple):
    """A job as a worker gets it. Payload, context and progress are still JSON text: the handler's type decides.

    A tuple, since it is made for every job that runs, and nothing is made faster.
    """

    id: UUID
    lease: int
    queue: str
    job_type: str
    job_version: int
    payload: str
    priority: int
    run_at: datetime
    attempt: int
    max_attempts: int | None
    timeout: timedelta | None
    context: str | None
    progress: str | None
    schedule_id: UUID | None

    @property
    def held(self) -> Held:
        return Held(self.id, self.lease)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A finished, failed attempt."""

    attempt: int
    worker: UUID | None
    started: datetime | None
    finished: datetime
    code: str
    message: str | None

    @classmethod
    def read(cls, fact: dict[str, Any]) -> Self:
        return cls(
            attempt=fact["attempt"],
            worker=UUID(fact["worker"]) if fact["worker"] else None,
            started=datetime.fromisoformat(fact["started"]) if fact["started"] else None,
            finished=datetime.fromisoformat(fact["finished"]),
            code=fact["code"],
            message=fact["message"],
        )


@dataclass(frozen=True, slots=True)
class Job:
    """A job as people look at it, in whichever room it is."""

    id: UUID
    namespace: str
    queue: str
    job_type: str
    job_version: int
    state: State
    priority: int
    run_at: datetime
    attempt: int
    max_attempts: int | None
    timeout: timedelta | None
    dedup_key: str | None
    concurrency_key: str | None
    worker_id: UUID | None
    lease: int | None
    error_code: str | None
    error_message: str | None
    schedule_id: UUID | None
    cancel_requested_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    payload: dict[str, Any]
    context: dict[str, Any] | None
    attempts: list[Attempt]
    progress: Any
    output: Any

    @classmethod
    def read(cls, row: Any) -> Self:
        fields = dict(row)
        fields["state"] = State(fields["state"])
        for name in ("payload", "context", "attempts", "progress", "output"):
            fields[name] = None if fields[name] is None else readable(fields[name])
        fields["attempts"] = [Attempt.read(fact) for fact in fields["attempts"]]
        return cls(**fields)


def readable(text: str) -> Any:
    """The JSON, or its text where Python cannot read it: one odd payload must not hide the jobs beside it."""
    try:
        return from_json(text)
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class Event:
    """What a handler had to tell."""

    at: datetime
    attempt: int
    event: Any


@dataclass(frozen=True, slots=True)
class QueueCount:
    """How many jobs of a queue are in a state; `ready` of them wait and are due."""

    namespace: str
    queue: str
    state: State
    jobs: int
    ready: int
    oldest_ready: timedelta | None

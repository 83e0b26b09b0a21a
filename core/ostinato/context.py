"""What a handler is given beside its payload: one attempt of one job, and the line to its worker."""

import asyncio
import logging
import re
from collections.abc import Coroutine, Mapping
from datetime import datetime
from threading import Event
from typing import Any, Final, Protocol
from uuid import UUID

from pydantic_core import from_json

from ostinato.newjob import Enqueued
from ostinato.store.job import Claimed

LOG: Final = logging.getLogger("ostinato.job")


TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*", re.ASCII)
LONGEST_TRACE_ID: Final = 128


class Line(Protocol):
    """To the worker, which does for all its handlers what they ask for."""

    @property
    def namespace(self) -> str: ...
    @property
    def state(self) -> Any: ...
    def now(self) -> datetime: ...
    async def progress(self, job: Claimed, value: Any) -> None: ...
    async def emit(self, job: Claimed, event: Any) -> None: ...
    async def enqueue(self, job_type: str, payload: Any, tx: Any, options: dict[str, Any]) -> Enqueued: ...
    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """For a handler in a thread: let the worker do it, and wait for the answer."""


class Cancelled:
    """Set when the attempt should end: a person called the job off, its time is up, or the worker has to stop."""

    __slots__ = ("_event", "_thread_event", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        self._event: asyncio.Event | None = None
        self._thread_event: Event | None = None

    def is_set(self) -> bool:
        return self.reason is not None

    async def wait(self) -> None:
        """In an asynchronous handler."""
        self._event = self._event or asyncio.Event()
        if not self.is_set():
            await self._event.wait()

    def wait_in_thread(self, seconds: float | None = None) -> bool:
        """In a synchronous handler: whether it was set within so many seconds."""
        self._thread_event = event = self._thread_event or Event()
        return self.is_set() or event.wait(seconds)

    def set(self, reason: str) -> None:
        self.reason = self.reason or reason
        if self._event:
            self._event.set()
        if self._thread_event:
            self._thread_event.set()


class Context:
    """In an asynchronous handler. `tx` is the transaction of a job with `transaction=True`."""

    __slots__ = ("_job", "_line", "cancelled", "max_attempts", "tx")

    def __init__(self, job: Claimed, line: Line, max_attempts: int, tx: Any = None) -> None:
        self._job = job
        self._line = line
        self.max_attempts = max_attempts
        self.tx = tx
        self.cancelled = Cancelled()

    @property
    def job_id(self) -> UUID:
        return self._job.id

    @property
    def job_type(self) -> str:
        return self._job.job_type

    @property
    def job_version(self) -> int:
        return self._job.job_version

    @property
    def namespace(self) -> str:
        return self._line.namespace

    @property
    def queue(self) -> str:
        return self._job.queue

    @property
    def attempt(self) -> int:
        """The first is 1."""
        return self._job.attempt

    @property
    def lease(self) -> int:
        """The fence of this attempt: larger systems that check it refuse a worker that was declared dead."""
        return self._job.lease

    @property
    def run_at(self) -> datetime:
        """When it was due."""
        return self._job.run_at

    @property
    def schedule_id(self) -> UUID | None:
        return self._job.schedule_id

    @property
    def context(self) -> dict[str, Any]:
        """What was given as `context` when it was enqueued."""
        return from_json(self._job.context) if self._job.context else {}

    @property
    def trace_id(self) -> str | None:
        """Of the trace that it was enqueued in, if its context says so as W3C's `traceparent` or as `trace_id`."""
        return find_trace_id(self.context)

    @property
    def last_progress(self) -> Any:
        """What an earlier attempt reported last: where to go on from."""
        return from_json(self._job.progress) if self._job.progress else None

    @property
    def state(self) -> Any:
        """What the application made when the worker started."""
        return self._line.state

    def now(self) -> datetime:
        """The database's time, by which jobs are due, as far as the worker knows it; in a test what the test says."""
        return self._line.now()

    @property
    def logger(self) -> "logging.LoggerAdapter[logging.Logger]":
        """Its lines say whose they are."""
        facts = {"job_id": str(self.job_id), "job_type": self.job_type, "attempt": self.attempt}
        return logging.LoggerAdapter(LOG, facts | ({"trace_id": trace} if (trace := self.trace_id) else {}))

    def in_thread(self) -> "SyncContext":
        """The same attempt, for a synchronous function beside it."""
        twin = SyncContext(self._job, self._line, self.max_attempts)
        twin.cancelled = self.cancelled
        return twin

    async def progress(self, value: Any) -> None:
        """Tell how far it is: any JSON, seen at once, and by the next attempt as `last_progress`."""
        await self._line.progress(self._job, value)

    async def emit(self, event: Any) -> None:
        """Add to the story of the job: any JSON."""
        await self._line.emit(self._job, event)

    async def enqueue(self, job_type: str, payload: Any = None, **options: Any) -> Enqueued:
        """As `ostinato.enqueue`, in this job's namespace; in a transactional job in its transaction."""
        given = {"namespace": self.namespace} | options
        return await self._line.enqueue(job_type, payload, self.tx, given)


def find_trace_id(context: Mapping[str, Any]) -> str | None:
    match context:
        case {"traceparent": str(text)} if found := TRACEPARENT.fullmatch(text):
            return found[1]
        case {"trace_id": str(text)} if text:
            return text[:LONGEST_TRACE_ID]
    return None


class SyncContext(Context):
    """In a synchronous handler, which runs in a thread: the same, but nothing is awaited."""

    __slots__ = ()

    def progress(self, value: Any) -> None:  # type: ignore[override]
        self._line.wait(self._line.progress(self._job, value))

    def emit(self, event: Any) -> None:  # type: ignore[override]
        self._line.wait(self._line.emit(self._job, event))

    def enqueue(self, job_type: str, payload: Any = None, **options: Any) -> Enqueued:  # type: ignore[override]
        given = {"namespace": self.namespace} | options
        done: Enqueued = self._line.wait(self._line.enqueue(job_type, payload, self.tx, given))
        return done

"""One attempt of a built-in handler, without a worker: the handler reads its payload and is called with a context."""

import json
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from ostinato import Context, Enqueued
from ostinato.handler import Handler
from ostinato.store.job import Claimed

JOB_ID = UUID("0199a5b0-7c1e-7d3a-9a55-3f2f6d1c8e42")


@dataclass
class Ledger:
    """A line that keeps what a handler tells, and may do something each time."""

    namespace: str = "default"
    state: Any = None
    told: list[Any] = field(default_factory=list)
    on_progress: Any = None

    def now(self) -> datetime:
        raise AssertionError("no built-in handler asks for the time")

    async def progress(self, job: Claimed, value: Any) -> None:
        self.told.append(value)
        if self.on_progress:
            await self.on_progress(value)

    async def emit(self, job: Claimed, event: Any) -> None:
        raise AssertionError("no built-in handler emits")

    async def enqueue(self, job_type: str, payload: Any, tx: Any, options: dict[str, Any]) -> Enqueued:
        raise AssertionError("no built-in handler enqueues")

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        raise AssertionError("no built-in handler runs in a thread")


def context(handler: Handler, line: Ledger, progress: Any = None) -> Context:
    claimed = Claimed(
        id=JOB_ID,
        lease=1,
        queue="default",
        job_type=handler.name,
        job_version=handler.version,
        payload="{}",
        priority=0,
        run_at=datetime(2026, 1, 31, 12, tzinfo=UTC),
        attempt=1,
        max_attempts=5,
        timeout=None,
        context=None,
        progress=None if progress is None else json.dumps(progress),
        schedule_id=None,
    )
    return Context(claimed, line, max_attempts=5)


async def attempt(handler: Handler, payload: dict[str, Any], ctx: Context | None = None) -> Any:
    """What the handler returns; raises what it raises, and ValueError if the payload does not fit."""
    ctx = ctx or context(handler, Ledger())
    return await handler.bind().call(handler.read(json.dumps(payload)), ctx)

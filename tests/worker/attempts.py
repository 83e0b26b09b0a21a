"""What a worker's pipeline would have: a claimed job, a context with a real line, and eyes for processes."""

import asyncio
import os
import select
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg.pgproto.pgproto
import pytest

from ostinato.context import Context, SyncContext
from ostinato.errors import InvalidArgument
from ostinato.handler import Handler
from ostinato.newjob import Enqueued
from ostinato.payload import encode_object
from ostinato.store.job import Claimed
from ostinato_worker.isolation import Isolator, Stopped

ENQUEUED = UUID("01890000-0000-7000-8000-000000000000")


class NotedLine:
    """Notes what handlers ask for."""

    namespace = "payments"
    state = None

    def __init__(self) -> None:
        self.said: asyncio.Queue[Any] = asyncio.Queue()
        self.noted: list[Any] = []

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(days=1)

    async def progress(self, job: Claimed, value: Any) -> None:
        self.noted.append(("progress", value))
        await self.said.put(value)

    async def emit(self, job: Claimed, event: Any) -> None:
        self.noted.append(("emit", event))

    async def enqueue(self, job_type: str, payload: Any, tx: Any, options: dict[str, Any]) -> Enqueued:
        if job_type == "refused":
            raise InvalidArgument("job_type", job_type, "nobody serves it")
        if job_type == "unanswered":
            await self.said.put("asked")
            await asyncio.Event().wait()
        self.noted.append(("enqueue", job_type, payload, options))
        return Enqueued(ENQUEUED, True)

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        raise AssertionError("only a thread may wait")


class Try:
    """One attempt, as the pipeline makes it."""

    def __init__(self, isolator: Isolator, handler: Any, payload: Any = None) -> None:
        assert isinstance(handler, Handler)
        self.line = NotedLine()
        claimed = Claimed(
            id=asyncpg.pgproto.pgproto.UUID(uuid4().hex),  # as a claim has it
            lease=7,
            queue="default",
            job_type=handler.name,
            job_version=handler.version,
            payload=encode_object("payload", payload or {}),
            priority=0,
            run_at=datetime.now(UTC),
            attempt=2,
            max_attempts=None,
            timeout=None,
            context='{"trace": "t"}',
            progress="[1]",
            schedule_id=None,
        )
        kind = Context if handler.is_async else SyncContext
        self.ctx = kind(claimed, self.line, max_attempts=5)
        self._work = isolator.perform(handler, claimed, self.ctx)

    async def end(self) -> Any:
        return await asyncio.wait_for(self._work, 20)

    def begin(self) -> "asyncio.Task[Any]":
        return asyncio.create_task(self.end())

    async def asked_to_end(self, running: "asyncio.Task[Any]") -> None:
        with pytest.raises(Stopped):
            await running

    async def said(self) -> Any:
        return await asyncio.wait_for(self.line.said.get(), 20)


class Watch:
    """On processes that must end. A pidfd is readable when its process has."""

    def __init__(self, *pids: int) -> None:
        self._handles = [os.pidfd_open(pid) for pid in pids]

    async def ended(self) -> None:
        try:
            for handle in self._handles:
                assert (await asyncio.to_thread(select.select, [handle], [], [], 10))[0], "a process is still there"
        finally:
            for handle in self._handles:
                os.close(handle)


def children_of(pid: int) -> list[int]:
    """Zombies too."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def descriptors_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


async def is_stopped(pid: int) -> None:
    while state_of(pid) != "T":
        await asyncio.sleep(0.005)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

"""In the child: the line to the worker, which does for all handlers what they ask for."""

import asyncio
import itertools
import os
import socket
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self
from uuid import UUID

from pydantic import TypeAdapter
from pydantic_core import from_json

from ostinato.newjob import Enqueued, check_options, encode_payload
from ostinato.payload import encode_object, encode_value
from ostinato.store.job import Claimed
from ostinato_worker.isolation import frames
from ostinato_worker.isolation.raised import refusal

JOB: Final = TypeAdapter(Claimed)


class ChildLine:
    """Lives in one event loop; a synchronous handler has it run in a thread beside."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: frames.Frame) -> None:
        self._reader, self._writer = reader, writer
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._taken = asyncio.Event()
        self.job: Claimed = JOB.validate_python(from_json(first["job"]))
        self.max_attempts: int = first["max_attempts"]
        self.namespace: str = first["namespace"]
        self._ahead = timedelta(seconds=first["ahead"])
        self.on_stop: Callable[[str], object] = lambda _: None

    @classmethod
    async def open(cls, sock: socket.socket) -> Self:
        reader, writer = await asyncio.open_unix_connection(sock=sock)
        first = await frames.read(reader)
        if first is None:
            os._exit(1)  # The worker gave up before we began.
        return cls(reader, writer, first)

    @property
    def state(self) -> Any:
        raise RuntimeError("a process of its own has no part in the worker's state; make what it needs in the handler")

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    async def listen(self) -> None:
        try:
            while frame := await frames.read(self._reader):
                self._hear(frame)
        finally:
            os._exit(1)  # The worker is gone, or done with us: nobody would hear the answer.

    def _hear(self, frame: frames.Frame) -> None:
        if "stop" in frame:
            self.on_stop(frame["stop"])
        elif "taken" in frame:
            self._taken.set()
        else:
            self._hear_answer(self._asked.pop(frame["number"]), frame)

    def _hear_answer(self, asked: asyncio.Future[Any], frame: frames.Frame) -> None:
        if asked.done():
            return  # The handler no longer waits for it.
        if "refused" in frame:
            asked.set_exception(refusal(frame["refused"]))
        else:
            asked.set_result(frame["done"])

    async def answer(self, frame: frames.Frame) -> None:
        """Returns when the worker has it."""
        self._writer.write(frames.encode(frame))
        await self._taken.wait()

    async def progress(self, job: Claimed, value: Any) -> None:
        await self._ask("progress", value=encode_value("progress", value))

    async def emit(self, job: Claimed, event: Any) -> None:
        await self._ask("emit", value=encode_value("event", event))

    async def enqueue(self, job_type: str, payload: Any, tx: Any, options: dict[str, Any]) -> Enqueued:
        check_options(job_type, options)
        plain = {name: _plain(name, value) for name, value in options.items()}
        made = await self._ask("enqueue", job_type=job_type, payload=encode_payload(payload), options=plain)
        return Enqueued(UUID(made["id"]), made["created"])

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _ask(self, what: str, **facts: Any) -> Any:
        number = next(self._numbers)
        asked = self._asked[number] = self._loop.create_future()
        self._writer.write(frames.encode({"ask": what, "number": number, **facts}))
        return await asked


def _plain(name: str, value: Any) -> Any:
    """An option as JSON has it."""
    if name == "context" and value is not None:
        return from_json(encode_object(name, value))
    if isinstance(value, datetime):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else value

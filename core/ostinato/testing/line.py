"""What a handler asks of its worker, noted instead of done. What the database would refuse is refused here too."""

import asyncio
from collections.abc import Coroutine
from datetime import datetime
from typing import Any
from uuid import uuid4

from pydantic_core import from_json

from ostinato.enqueue import enqueue
from ostinato.newjob import Enqueued, NewJob, check_options, encode_payload
from ostinato.payload import encode_value
from ostinato.store.job import Claimed
from ostinato.testing.clock import Clock
from ostinato_worker.threads import wait_from_thread


class NotedLine:
    def __init__(self, namespace: str, state: Any, clock: Clock, *, isolated: bool) -> None:
        self.namespace = namespace
        self.progressed: list[Any] = []
        self.emitted: list[Any] = []
        self.enqueued: list[NewJob] = []
        self._state = state
        self._clock = clock
        self._isolated = isolated
        self._loop = asyncio.get_running_loop()

    @property
    def state(self) -> Any:
        if self._isolated:
            raise RuntimeError("an isolated job has no part in the worker's state; make what it needs in the handler")
        return self._state

    def now(self) -> datetime:
        return self._clock.now()

    async def progress(self, job: Claimed, value: Any) -> None:
        self.progressed.append(_stored("progress", value))

    async def emit(self, job: Claimed, event: Any) -> None:
        self.emitted.append(_stored("event", event))

    async def enqueue(self, job_type: str, payload: Any, tx: Any, options: dict[str, Any]) -> Enqueued:
        """In a transaction, which is the test's, it is done as well."""
        check_options(job_type, options)
        new = NewJob(job_type, from_json(encode_payload(payload)), **options)
        made = Enqueued(uuid4(), True) if tx is None else await enqueue(tx, job_type, payload, **options)
        self.enqueued.append(new)
        return made

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return wait_from_thread(self._loop, work)


def _stored(argument: str, value: Any) -> Any:
    """As it would be read again."""
    text = encode_value(argument, value)
    return None if text is None else from_json(text)

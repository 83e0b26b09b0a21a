"""What handlers ask of their worker: see `ostinato.context.Line`."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from datetime import datetime
from typing import Any, Final

from ostinato import Enqueued, enqueue, store
from ostinato.database import Database
from ostinato.store import Claimed
from ostinato_worker.threads import wait_from_thread

LOG: Final = logging.getLogger("ostinato.job")


class WorkerLine:
    def __init__(
        self,
        database: Database,
        namespace: str,
        state: Any,
        lost: Callable[[int], None],
        now: Callable[[], datetime],
        patience: float,
    ) -> None:
        self.now = now
        self.namespace = namespace
        self.state = state
        self._database = database
        self._lost = lost
        self._patience = patience
        self._loop = asyncio.get_running_loop()

    async def progress(self, job: Claimed, value: Any) -> None:
        async with self._database.borrow(self._patience) as conn:
            held = await store.progress(conn, job.held, value)
        if not held:
            self._lost(job.lease)

    async def emit(self, job: Claimed, event: Any) -> None:
        async with self._database.borrow(self._patience) as conn:
            await store.emit(conn, job.held, attempt=job.attempt, event=event)

    async def enqueue(self, job_type: str, payload: Any, tx: Any, options: dict[str, Any]) -> Enqueued:
        where = self._database.borrow(self._patience) if tx is None else nullcontext(tx)
        async with where as conn:
            made: Enqueued = await enqueue(conn, job_type, payload, **options)
        return made

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return wait_from_thread(self._loop, work)

"""Hears of new jobs and of cancellations by LISTEN, on a connection of its own. A hint: whoever misses one polls.

The connection is asked for a sign of life now and then: a cut network is silent, and so is a queue without work.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from ostinato import store
from ostinato.database import Database

LOG: Final = logging.getLogger("ostinato.worker")
PING_SECONDS: Final = 15.0
PATIENCE: Final = 5.0


class Listener:
    """`ready(queue, priority)`: something can be claimed. `cancelled(job)`: it should stop."""

    def __init__(
        self,
        database: Database,
        namespace: str,
        *,
        ready: Callable[[str, int], None],
        cancelled: Callable[[UUID], None],
        connected: Callable[[], None],
    ) -> None:
        self._database = database
        self._namespace = namespace
        self._ready = ready
        self._cancelled = cancelled
        self._connected = connected
        self.listens = False

    async def run(self) -> None:
        """Until the connection breaks."""
        try:
            async with self._database.connect() as conn:
                await conn.add_listener("ostinato_jobs", self._hear_of_jobs)
                await conn.add_listener("ostinato_cancel", self._hear_of_cancellation)
                self.listens = True
                self._connected()  # what was said while nobody listened has to be looked for
                while True:
                    await asyncio.sleep(PING_SECONDS)
                    async with asyncio.timeout(PATIENCE):
                        await store.clock(conn)
        finally:
            self.listens = False

    def _hear_of_jobs(self, *said: Any) -> None:
        namespace, _, line = said[-1].partition("/")
        queue, _, priority = line.rpartition("/")
        if namespace == self._namespace:
            with suppress(ValueError):  # anybody may say anything on a channel
                self._ready(queue, int(priority))

    def _hear_of_cancellation(self, *said: Any) -> None:
        with suppress(ValueError):
            self._cancelled(UUID(said[-1].rpartition("/")[2]))

"""Gives back, from the heart's thread, what a worker has claimed ahead while a handler blocks its event loop."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ostinato import store
from ostinato.store import Claimed
from ostinato_worker.crew import Crew

PATIENCE: Final = 5.0  # with the database
LOG: Final = logging.getLogger("ostinato.worker")


class Relief:
    """Once the worker's own loop goes on, it hears: `gone`, which jobs it has no more; `doubted`, that it may have some
    of them all the same."""

    def __init__(self, crew: Crew, gone: Callable[[list[Claimed]], None], doubted: Callable[[], None]) -> None:
        self._crew = crew
        self._gone = gone
        self._doubted = doubted
        self._loop = asyncio.get_running_loop()

    @property
    def is_needed(self) -> bool:
        return bool(self._crew.waiting) and not self._crew.frozen

    async def give_back(self, conn: store.Connection) -> None:
        """If that fails, it may have been written all the same: then nobody here runs them either."""
        jobs: list[Claimed] = []
        sure = False
        try:
            jobs = self._crew.freeze()
            LOG.warning("a handler blocks the event loop: %d jobs that wait for it are given back", len(jobs))
            async with asyncio.timeout(PATIENCE):
                await store.release(conn, jobs)
            sure = True
        finally:
            self._loop.call_soon_threadsafe(self._thaw, {job.lease for job in jobs}, sure)

    def _thaw(self, leases: set[int], sure: bool) -> None:
        self._gone(self._crew.thaw(leases))
        if not sure:
            self._doubted()

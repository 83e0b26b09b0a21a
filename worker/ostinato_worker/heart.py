"""Renews the worker's lease from a thread with a connection of its own.

A handler that blocks the event loop then neither costs the worker its lease nor lets it go on believing in one: what
counts is when the last renewal that worked began, by our own steady clock, which never runs ahead of the database's by
more than the lease is cut short here.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final
from uuid import UUID

from ostinato import store
from ostinato.database import Database
from ostinato.errors import OstinatoError
from ostinato.postgres import DATABASE_ERRORS
from ostinato.store import Renewal
from ostinato_worker.relief import Relief

LOG: Final = logging.getLogger("ostinato.worker")
BEATS: Final = 3  # in each lease
MARGIN: Final = 0.85  # of a lease, after which ours counts as lost: others may have the jobs at 1
PATIENCE: Final = 0.5  # between two tries
LONGEST_SILENCE: Final = 1.0  # seconds that the worker's event loop may not answer for
LAST_BEAT: Final = 2.0  # seconds to close its connection


class Heart:
    """`renewed`, `failed` and `lost` are called in the event loop that made it; `relief` helps if that is blocked."""

    def __init__(
        self,
        database: Database,
        worker_id: UUID,
        lease: timedelta,
        *,
        renewed: Callable[[Renewal], None],
        failed: Callable[[str], None],
        lost: Callable[[str], None],
        relief: Relief,
    ) -> None:
        self._database = database
        self._worker_id = worker_id
        self._lease = lease
        self._renewed = renewed
        self._failed = failed
        self._lost = lost
        self._relief = relief
        self._heard = True  # whether the worker's loop has answered
        self._loop = asyncio.get_running_loop()
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._beat, name="ostinato-heart", daemon=True)
        self.held_until = time.monotonic() + lease.total_seconds() * MARGIN

    @property
    def held(self) -> bool:
        return time.monotonic() < self.held_until

    def start(self) -> None:
        self._thread.start()

    def halt(self) -> None:
        """Renew nothing more. From any thread, at any time."""
        self._stopped = True
        with contextlib.suppress(RuntimeError):  # its loop has just been closed
            if self._own_loop:
                self._own_loop.call_soon_threadsafe(self._ended.set)

    async def stop(self) -> None:
        self.halt()
        await asyncio.to_thread(self._thread.join, LAST_BEAT)

    def _beat(self) -> None:
        try:
            asyncio.run(self._live())
        except RuntimeError:
            # The worker's loop was closed without a goodbye: there is nobody left to tell.
            LOG.debug("the event loop is gone", exc_info=True)

    async def _live(self) -> None:
        """Whatever a renewal waits for, a connection or its closing too: the end of the lease is told in time."""
        self._own_loop = asyncio.get_running_loop()
        relieving = asyncio.create_task(self._relieve())
        tasks = [asyncio.create_task(self._renew()), asyncio.create_task(self._watch())]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not self._stopped:
            self._tell(self._lost, next(iter(done)).result())
        for task in (*tasks, relieving):
            task.cancel()
        await asyncio.wait((*tasks, relieving))

    async def _watch(self) -> str:
        while not self._stopped and (left := self.held_until - time.monotonic()) > 0:
            await self._pause(left)
        return "it could not be renewed in time"

    async def _renew(self) -> str:
        while not self._stopped:
            try:
                async with self._database.connect() as conn:
                    if not await self._renew_on(conn):
                        return "the database has declared it dead"
            except Exception as error:
                self._tell(self._failed, str(error))
                LOG.warning("could not renew the lease: %s: %s", type(error).__name__, error)
                await self._pause(PATIENCE)
        return ""

    async def _relieve(self) -> None:
        """What a worker whose event loop is blocked has claimed ahead must not wait for that."""
        while not self._stopped:
            await self._pause(LONGEST_SILENCE / 2)
            if not self._relief.is_needed:
                continue  # an idle worker is left alone
            self._heard = False
            self._loop.call_soon_threadsafe(self._hear)
            await self._pause(LONGEST_SILENCE / 2)
            if not self._heard and self._relief.is_needed:
                with contextlib.suppress(*DATABASE_ERRORS, OstinatoError):
                    async with self._database.connect() as conn:
                        await self._relief.give_back(conn)

    def _hear(self) -> None:
        self._heard = True

    async def _renew_on(self, conn: store.Connection) -> bool:
        """Until told to stop, or False if the worker holds nothing any more."""
        while not self._stopped:
            began = time.monotonic()
            # A server that does not answer is no reason to wait longer than the lease lasts.
            async with asyncio.timeout(max(0.1, self.held_until - began)):
                renewal = await store.renew_worker(conn, self._worker_id, lease=self._lease)
            if renewal is None:
                return False
            self.held_until = began + self._lease.total_seconds() * MARGIN
            self._tell(self._renewed, renewal)
            await self._pause(self._lease.total_seconds() / BEATS)
        return True

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)

    def _tell(self, hear: Callable[..., None], said: object) -> None:
        self._loop.call_soon_threadsafe(hear, said)

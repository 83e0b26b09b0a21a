"""One transaction after the other on one connection, in as few round trips as there can be.

An attempt's own statements wait for the network and the disk already. So the completion of its job goes out in one
message with the commit, and where another job waits its transaction begins in that message too.
"""

import time
from typing import Any, Final
from uuid import UUID

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from ostinato import store
from ostinato.store import Claimed, Held

FRESH_SECONDS: Final = 0.1
NOBODY: Final = Held(UUID(int=0), 0)


class Transaction:
    """`conn` is what a handler gets: asyncpg takes it for a connection in a transaction of its own making, so that
    `conn.transaction()` is a savepoint."""

    def __init__(self, conn: Any) -> None:
        self.conn = conn
        # asyncpg sends BEGIN and COMMIT by themselves, each a round trip. Beside that it keeps one fact, the outermost
        # transaction, for which it has no public name, nor for giving out a connection anew. Its range is pinned, and
        # tests hold this.
        self._outermost = conn.transaction()
        self._connection = self._outermost._connection
        self._begun_at: float | None = None
        self._completion: Any = None
        self._prepared: str | None = None  # its name

    async def prepare(self) -> None:
        """Plan once how jobs are completed here."""
        self._completion = await self._connection.prepare(store.COMPLETE_ONE.text)
        self._prepared = self._completion.get_name()

    @property
    def fresh(self) -> bool:
        """It has begun, and for a job that comes now: else now() would be too early for it."""
        return self._begun_at is not None and time.monotonic() - self._begun_at < FRESH_SECONDS

    @property
    def stale(self) -> bool:
        return self._begun_at is not None and not self.fresh

    async def begin(self) -> None:
        if self.stale:
            await self.roll_back()
        if self._begun_at is None:
            await self.conn.execute("begin")
            self._begin_on_our_side()

    async def complete(self, job: Held | Claimed, output: Any, *, go_on: bool) -> None:
        """Complete the job and commit; with `go_on` begin the next. Raises what the server says of any of these."""
        text = store.completion(job, output, prepared=self._prepared)
        # Not `commit and chain`, which would give the next job what this one has set for its transaction.
        await self._connection.execute(f"{text}; commit; begin" if go_on else f"{text}; commit")
        self._end_on_our_side()
        if go_on:
            self._begin_on_our_side()

    def take_back(self) -> None:
        """From a handler: what it left behind finds its connection released, as a pool's, and not the next job's."""
        holder, connection = self.conn._holder, self.conn._detach()
        if connection is not None:  # it has not broken
            connection._pool_release_ctr += 1
            self.conn = holder._proxy = PoolConnectionProxy(holder, connection)

    async def rehearse(self) -> None:
        """Complete a job that does not exist: what a session does for the first time takes it longest."""
        await self.begin()
        try:
            await self.complete(NOBODY, None, go_on=False)
        except asyncpg.PostgresError as error:
            if not store.is_lost(error):
                raise
        await self.roll_back()

    async def roll_back(self) -> None:
        if self._begun_at is not None:
            await self.conn.execute("rollback")
            self._end_on_our_side()

    def _begin_on_our_side(self) -> None:
        self._connection._top_xact = self._outermost
        self._begun_at = time.monotonic()

    def _end_on_our_side(self) -> None:
        self._connection._top_xact = None
        self._begun_at = None

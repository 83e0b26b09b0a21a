"""One transaction after the other on one connection, in as few round trips as there can be.

An attempt's own statements wait for the network and the disk already. So the completion of its job goes out in one
message with the commit, and where another job waits its transaction begins in that message too.
"""

import time
from typing import Any, Final

from ostinato import store
from ostinato.store import Claimed

FRESH_SECONDS: Final = 0.1


class Transaction:
    """`conn` is what a handler gets: asyncpg takes it for a connection in a transaction of its own making, so that
    `conn.transaction()` is a savepoint."""

    def __init__(self, conn: Any) -> None:
        self.conn = conn
        # asyncpg sends BEGIN and COMMIT by themselves, each a round trip. Beside that it keeps one fact, the outermost
        # transaction, for which it has no public name; its range is pinned, and tests hold this.
        self._outermost = conn.transaction()
        self._connection = self._outermost._connection
        self._begun_at: float | None = None

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

    async def complete(self, job: Claimed, output: Any, *, go_on: bool) -> None:
        """Complete the job and commit; with `go_on` begin the next. Raises what the server says of any of these."""
        text = store.completion(job, output)
        await self.conn.execute(f"{text}; commit and chain" if go_on else f"{text}; commit")
        self._end_on_our_side()
        if go_on:
            self._begin_on_our_side()

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

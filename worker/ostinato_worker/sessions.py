"""The connections of transactional attempts, kept from job to job: a pool would clean each one up with a round trip.

So what a handler sets for the session, and not by SET LOCAL for its transaction, the next one finds: the same as behind
PgBouncer in transaction mode.
"""

import asyncio
import logging
from collections import deque
from contextlib import suppress
from typing import Any, Final

from ostinato.database import Database, cut_off
from ostinato.postgres import DATABASE_ERRORS
from ostinato.transaction import Transaction

LOG: Final = logging.getLogger("ostinato.worker")
FIRST: Final = 8
LAST_CARE: Final = 1.0  # seconds to clean up a connection before the end
SCARCE: Final = (
    "PgBouncer: a transactional job holds one of its connections to the server while it runs. Allow more of them"
    " (default_pool_size) than all workers have slots, and set OSTINATO_LISTEN_DSN so that leases are renewed past it"
)


class NotBegun(Exception):
    """There was no transaction to be had: the handler was not called, so no attempt is spent."""


class Sessions:
    """At most so many. The last used is the first taken, and one is opened at a time: short jobs make do with few,
    which cost the server least."""

    def __init__(self, database: Database, most: int, patience: float) -> None:
        self._pool = database.pool
        self._scarce = not database.can_listen
        self._prepares = database.prepares
        self._most = most
        self._patience = patience  # for what a server does at once, or not at all
        self._free: list[Transaction] = []
        self._opened = 0
        self._opening = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def open_first(self) -> None:
        """Some, before jobs need them: what a server prepares for a new session takes it longer than most jobs."""
        if self._scarce:
            LOG.warning(SCARCE)
        with suppress(*DATABASE_ERRORS):  # jobs will find out, and say so
            await asyncio.gather(*(self._rehearse() for _ in range(min(self._most, FIRST))))

    async def take(self) -> Transaction:
        """One that has begun."""
        while True:
            if self._free:
                return await self._begun(self._free.pop())
            if self._opened < self._most and not self._opening:
                return await self._begun(None)
            await self._turn()

    def keep(self, transaction: Transaction) -> None:
        """It ended well."""
        self._free.append(transaction)
        self._next_turn()

    async def give_up(self, transaction: Transaction) -> None:
        """It did not: its connection goes back to the pool, to be cleaned up or closed."""
        try:
            async with asyncio.timeout(self._patience):
                await transaction.roll_back()
        except DATABASE_ERRORS:
            cut_off(transaction.conn)  # the server rolls back what it can no longer talk about
        finally:
            await self._let_go(transaction)

    async def end_stale(self) -> None:
        """What began for a job that did not come: nobody shall see our sessions idle in transaction for long."""
        stale = [transaction for transaction in self._free if transaction.stale]
        self._free = [transaction for transaction in self._free if transaction not in stale]
        for transaction in stale:
            await self.give_up(transaction)

    async def close(self) -> None:
        free, self._free = self._free, []
        for transaction in free:
            if transaction.fresh or transaction.stale:
                cut_off(transaction.conn)
        back = (self._pool.release(transaction.conn, timeout=LAST_CARE) for transaction in free)
        await asyncio.gather(*back, return_exceptions=True)

    async def _begun(self, kept: Transaction | None) -> Transaction:
        if kept and kept.fresh:
            return kept
        try:
            if kept:
                # It may have broken while nobody used it; then a new one may not.
                with suppress(*DATABASE_ERRORS):
                    return await self._begin(kept)
            return await self._begin(await self._open())
        except DATABASE_ERRORS as error:
            raise NotBegun(str(error)) from error

    async def _open(self) -> Transaction:
        self._opening = True
        self._opened += 1
        try:
            return await self._made(await self._pool.acquire())
        except BaseException:
            self._opened -= 1
            raise
        finally:
            self._opening = False
            self._next_turn()

    async def _made(self, conn: Any) -> Transaction:
        transaction = Transaction(conn)
        try:
            if self._prepares:
                async with asyncio.timeout(self._patience):
                    await transaction.prepare()
        except BaseException:
            cut_off(conn)
            await self._pool.release(conn)
            raise
        return transaction

    async def _begin(self, transaction: Transaction) -> Transaction:
        try:
            async with asyncio.timeout(self._patience):
                await transaction.begin()
        except BaseException:
            cut_off(transaction.conn)
            await self._let_go(transaction)
            raise
        return transaction

    async def _rehearse(self) -> None:
        transaction = await self._open()
        try:
            await transaction.rehearse()
        except BaseException:
            await self.give_up(transaction)
            raise
        self.keep(transaction)

    async def _let_go(self, transaction: Transaction) -> None:
        self._opened -= 1
        self._next_turn()
        with suppress(*DATABASE_ERRORS):  # it cannot be cleaned up; that must not hide what went wrong
            await asyncio.shield(self._pool.release(transaction.conn, timeout=self._patience))

    async def _turn(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self._next_turn()  # it came, but too late for us
            raise

    def _next_turn(self) -> None:
        while self._waiting:
            if not (turn := self._waiting.popleft()).done():
                return turn.set_result(None)
        return None

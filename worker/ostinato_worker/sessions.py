"""The connections of transactional attempts, kept from job to job: a pool would clean each one up with a round trip.

So what a handler sets for the session, and not by SET LOCAL for its transaction, the next one finds: the same as behind
PgBouncer in transaction mode.
"""

import asyncio
from contextlib import suppress
from typing import Final
from uuid import UUID

from ostinato import store
from ostinato.database import cut_off
from ostinato.postgres import DATABASE_ERRORS, PostgresPool
from ostinato.store import Held
from ostinato.transaction import Transaction

LAST: Final = 1
FIRST: Final = 8
NOBODY: Final = Held(UUID(int=0), 0)


class NotBegun(Exception):
    """There was no transaction to be had: the handler was not called, so no attempt is spent."""


class Sessions:
    """At most so many. The last used is the first taken, and one is opened at a time: short jobs make do with few,
    which cost the server least."""

    def __init__(self, pool: PostgresPool, most: int, patience: float) -> None:
        self._pool = pool
        self._most = most
        self._patience = patience  # for what a server does at once, or not at all
        self._opened = 0
        self._uses = 0
        # None is the leave to open one more: it comes after all that are free, and is there while there may be more.
        self._free: asyncio.PriorityQueue[tuple[int, Transaction | None]] = asyncio.PriorityQueue()
        self._free.put_nowait((LAST, None))

    async def open_first(self) -> None:
        """Some, before jobs need them: what a server prepares for a new session takes it longer than most jobs."""
        self._free.get_nowait()
        try:
            with suppress(*DATABASE_ERRORS):  # jobs will find out, and say so
                await asyncio.gather(*(self._rehearse() for _ in range(min(self._most, FIRST))))
        finally:
            if self._opened < self._most:
                self._free.put_nowait((LAST, None))

    async def take(self) -> Transaction:
        """One that has begun."""
        _, kept = await self._free.get()
        if kept and kept.begun and not kept.stale:
            return kept
        try:
            if kept is not None:
                # It may have broken while nobody used it; then a new one may not.
                with suppress(*DATABASE_ERRORS):
                    return await self._begin(kept)
                _, kept = await self._free.get()
            return await self._begin(kept or await self._open())
        except DATABASE_ERRORS as error:
            raise NotBegun(str(error)) from error

    def keep(self, transaction: Transaction) -> None:
        """It ended well."""
        self._uses += 1
        self._free.put_nowait((-self._uses, transaction))

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
        free = [self._free.get_nowait() for _ in range(self._free.qsize())]
        stale = {transaction for _, transaction in free if transaction and transaction.stale}
        for place, transaction in free:
            if transaction not in stale:
                self._free.put_nowait((place, transaction))
        for transaction in stale:
            await self.give_up(transaction)

    async def close(self) -> None:
        while not self._free.empty():
            _, transaction = self._free.get_nowait()
            if transaction is not None:
                await self.give_up(transaction)

    async def _open(self) -> Transaction:
        try:
            transaction = Transaction(await self._pool.acquire())
            self._opened += 1
        finally:
            if self._opened < self._most:
                self._free.put_nowait((LAST, None))
        return transaction

    async def _rehearse(self) -> None:
        """Complete a job that does not exist."""
        self._opened += 1
        try:
            transaction = Transaction(await self._pool.acquire())
        except BaseException:
            self._opened -= 1
            raise
        try:
            await transaction.begin()
            await store.complete_one(transaction.conn, NOBODY)
        except BaseException:
            cut_off(transaction.conn)
            self._opened -= 1
            await self._pool.release(transaction.conn)
            raise
        await transaction.roll_back()
        self.keep(transaction)

    async def _begin(self, transaction: Transaction) -> Transaction:
        try:
            async with asyncio.timeout(self._patience):
                await transaction.begin()
        except BaseException:
            cut_off(transaction.conn)
            await self._let_go(transaction)
            raise
        return transaction

    async def _let_go(self, transaction: Transaction) -> None:
        if self._opened == self._most:
            self._free.put_nowait((LAST, None))
        self._opened -= 1
        await asyncio.shield(self._pool.release(transaction.conn))

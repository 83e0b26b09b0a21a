"""Transactional attempts: the handler's work and the completion of its job commit together, or neither does.

The fence makes the effects happen once: a worker that lost its lease finds nothing to complete, and rolls back.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from ostinato import store
from ostinato.database import Database, cut_off
from ostinato.failures import Code, TransientError
from ostinato.postgres import DATABASE_ERRORS
from ostinato_worker.verdict import Committed

if TYPE_CHECKING:
    from ostinato_worker.attempt import Attempt


class LeaseLost(Exception):
    """What this attempt did was rolled back: another may have the job by now."""


class NotBegun(Exception):
    """There was no transaction to be had: the handler was not called, so no attempt is spent."""


class Transactions:
    """Keeps its connections from job to job: a pool would clean each one up with a round trip of its own.

    So what a handler sets for the session, and not by SET LOCAL for its transaction, the next one finds: the same as
    behind PgBouncer in transaction mode.
    """

    def __init__(self, database: Database, connections: int, patience: float) -> None:
        self._pool = database.pool
        self._patience = patience  # for what a server does at once, or not at all
        # As many as there may be, the last used on top; None is one that has yet to be taken from the pool.
        self._kept: asyncio.LifoQueue[Any] = asyncio.LifoQueue()
        for _ in range(connections):
            self._kept.put_nowait(None)
        self._used: set[Any] = set()

    async def close(self) -> None:
        """What a handler that does not end still holds is cut off: its work is not to be committed any more."""
        for conn in self._used:
            cut_off(conn)
        while not self._kept.empty():
            if conn := self._kept.get_nowait():
                await self._pool.release(conn)

    async def perform(self, attempt: "Attempt", payload: Any) -> Committed:
        assert attempt.bound is not None
        async with self._begun() as (conn, transaction):
            try:
                attempt.ctx.tx = conn
                output = await attempt.bound.call(payload, attempt.ctx)
                # From here on nobody interrupts it: a commit that is cut off may have happened.
                attempt.returned = True
                if attempt.overdue:
                    raise LeaseLost
                await self._complete(conn, attempt, output)
            except BaseException:
                await _roll_back(conn, transaction, self._patience)
                raise
            finally:
                attempt.ctx.tx = None  # whoever goes on after the handler has no part in the next job's transaction
            await self._commit(transaction)
        return Committed()

    async def _complete(self, conn: Any, attempt: "Attempt", output: Any) -> None:
        try:
            async with asyncio.timeout(self._patience):
                held = await store.complete_one(conn, attempt.job, output)
        except DATABASE_ERRORS as error:
            raise TransientError(f"it could not be completed: {error}", code=Code.COMMIT_FAILED) from error
        if not held:
            raise LeaseLost

    @asynccontextmanager
    async def _begun(self) -> AsyncIterator[tuple[Any, Any]]:
        """A connection in a transaction; after a failure it goes back to the pool, to be cleaned up or closed."""
        kept = await self._kept.get()
        try:
            conn, transaction = await self._begin(kept)
            self._used.add(conn)
            try:
                yield conn, transaction
            except BaseException:
                await asyncio.shield(self._pool.release(conn))
                raise
            finally:
                self._used.discard(conn)
        except BaseException:
            self._kept.put_nowait(None)
            raise
        self._kept.put_nowait(conn)

    async def _begin(self, kept: Any) -> tuple[Any, Any]:
        try:
            if kept is not None:
                # It may have broken while nobody used it; then a new one may not.
                with suppress(*DATABASE_ERRORS):
                    return await self._begin_on(kept)
            return await self._begin_on(await self._pool.acquire())
        except DATABASE_ERRORS as error:
            raise NotBegun(str(error)) from error

    async def _begin_on(self, conn: Any) -> tuple[Any, Any]:
        transaction = conn.transaction()
        try:
            async with asyncio.timeout(self._patience):
                await transaction.start()
        except BaseException:
            cut_off(conn)
            await asyncio.shield(self._pool.release(conn))
            raise
        return conn, transaction

    async def _commit(self, transaction: Any) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await transaction.commit()
        except DATABASE_ERRORS as error:
            # It may have happened all the same, if the connection broke: then the fence refuses what we record now.
            raise TransientError(f"it could not commit: {error}", code=Code.COMMIT_FAILED) from error


async def _roll_back(conn: Any, transaction: Any, patience: float) -> None:
    try:
        async with asyncio.timeout(patience):
            await transaction.rollback()
    except DATABASE_ERRORS:
        cut_off(conn)  # the server rolls back what it can no longer talk about

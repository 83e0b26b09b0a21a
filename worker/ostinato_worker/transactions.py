"""Transactional attempts: the handler's work and the completion of its job commit together, or neither does.

The fence makes the effects happen once: a worker that lost its lease finds nothing to complete, and rolls back.
"""

from typing import TYPE_CHECKING, Any

from ostinato import store
from ostinato.database import Database
from ostinato.failures import Code, TransientError
from ostinato.postgres import DATABASE_ERRORS, PostgresConnection
from ostinato_worker.verdict import Committed

if TYPE_CHECKING:
    from ostinato_worker.attempt import Attempt


class LeaseLost(Exception):
    """What this attempt did was rolled back: another may have the job by now."""


class Transactions:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def perform(self, attempt: "Attempt", payload: Any) -> Committed:
        assert attempt.bound is not None
        async with self._database.pool.acquire() as lent:
            conn: Any = lent
            transaction = conn.transaction()
            await transaction.start()
            try:
                attempt.ctx.tx = conn
                output = await attempt.bound.call(payload, attempt.ctx)
                # From here on nobody interrupts it: a commit that is cut off may have happened.
                attempt.returned = True
                if attempt.overdue:
                    raise LeaseLost
                await self._complete(conn, attempt, output)
            except BaseException:
                await _roll_back(conn, transaction)
                raise
            await self._commit(transaction)
        return Committed()

    async def _complete(self, conn: PostgresConnection, attempt: "Attempt", output: Any) -> None:
        try:
            lost = await store.complete(conn, [attempt.job], [] if output is None else [output])
        except DATABASE_ERRORS as error:
            raise TransientError(f"it could not be completed: {error}", code=Code.COMMIT_FAILED) from error
        if lost:
            raise LeaseLost

    async def _commit(self, transaction: Any) -> None:
        try:
            await transaction.commit()
        except DATABASE_ERRORS as error:
            # It may have happened all the same, if the connection broke: then the fence refuses what we record now.
            raise TransientError(f"it could not commit: {error}", code=Code.COMMIT_FAILED) from error


async def _roll_back(conn: Any, transaction: Any) -> None:
    try:
        if not conn.is_closed():
            await transaction.rollback()
    except DATABASE_ERRORS:
        conn.terminate()  # the server rolls back what it can no longer talk about

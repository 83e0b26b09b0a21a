"""Transactional attempts: the handler's work and the completion of its job commit together, or neither does.

The fence makes the effects happen once: a worker that lost its lease finds nothing to complete, and rolls back.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from ostinato import store
from ostinato.database import cut_off
from ostinato.failures import Code, TransientError
from ostinato.payload import Json
from ostinato.postgres import DATABASE_ERRORS
from ostinato.transaction import Transaction
from ostinato_worker.attempt import TIMEOUT, Attempt
from ostinato_worker.backing_off import BackOff
from ostinato_worker.output import encode_output
from ostinato_worker.sessions import NotBegun, Sessions
from ostinato_worker.verdict import Committed

LOG: Final = logging.getLogger("ostinato.worker")
LOOK_SECONDS: Final = 1.0


class LeaseLost(Exception):
    """What this attempt did was rolled back: another may have the job by now."""


class Transactions:
    """`more` says whether jobs wait for a slot: then the next transaction begins in one message with the last's end."""

    def __init__(self, sessions: Sessions, patience: float, more: Callable[[], bool]) -> None:
        self._sessions = sessions
        self._patience = patience  # for what a server does at once, or not at all
        self._more = more
        self._used: set[Transaction] = set()
        # Those that wait for the server to end them, by how often we had looked when they began to.
        self._ending: dict[Transaction, int] = {}
        self._looks = 0
        self._back_off = BackOff()

    async def watch(self) -> None:
        """For ever: cut off what the server does not answer, and end what began for a job that did not come.

        A timer for each statement costs more than the look. Looks are counted, and not seconds: a handler that blocks
        the event loop must not make the server look slow.
        """
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._looks += 1
            for transaction, since in list(self._ending.items()):
                if (self._looks - since) * LOOK_SECONDS > self._patience:
                    cut_off(transaction.conn)
            await self._sessions.end_stale()

    async def close(self) -> None:
        """What a handler that does not end still holds is cut off: its work is not to be committed any more."""
        for transaction in self._used:
            cut_off(transaction.conn)
        await self._sessions.close()

    async def perform(self, attempt: Attempt, payload: Any) -> Committed:
        assert attempt.bound is not None
        transaction = await self._begun(attempt)
        self._used.add(transaction)
        try:
            attempt.ctx.tx = transaction.conn
            try:
                # From when it returns nobody interrupts it: a commit that is cut off may have happened.
                attempt.returns(await attempt.bound.call(payload, attempt.ctx))
            finally:
                # Whoever goes on after the handler has no part in the next job's transaction.
                attempt.ctx.tx = None
                transaction.take_back()
            if attempt.overdue:
                raise LeaseLost
            output = encode_output(attempt.output)
            await self._complete(transaction, attempt, output)
        except BaseException:
            await self._sessions.give_up(transaction)
            raise
        finally:
            self._used.discard(transaction)
        self._sessions.keep(transaction)
        return Committed(output)

    async def _complete(self, transaction: Transaction, attempt: Attempt, output: Json | None) -> None:
        self._ending[transaction] = self._looks
        try:
            await transaction.complete(attempt.job, output, go_on=self._more())
        except DATABASE_ERRORS as error:
            if store.is_lost(error):
                raise LeaseLost from error
            # It may have happened all the same, if the connection broke: then the fence refuses what we record now.
            raise TransientError(f"it could not be committed: {error}", code=Code.COMMIT_FAILED) from error
        finally:
            del self._ending[transaction]

    async def _begun(self, attempt: Attempt) -> Transaction:
        """Given back at once, the job would be claimed again at once: a slot that waits for a moment asks for nothing.

        Those whose connection is there go on meanwhile.
        """
        try:
            try:
                transaction = await self._sessions.take()
            except NotBegun as error:
                LOG.warning("no connection for job %s, which is given back in a moment: %s", attempt.job.id, error)
                await self._back_off.wait()
                raise
        except asyncio.CancelledError as error:
            if attempt.ctx.cancelled.reason == TIMEOUT:  # a handler that was not called has not taken too long
                raise NotBegun("its time was up before there was a connection") from None
            raise error
        self._back_off.forget()
        return transaction

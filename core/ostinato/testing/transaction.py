"""The test's own transaction, lent to a transactional handler. Nothing is committed here."""

from typing import Any

from ostinato.errors import InvalidArgument
from ostinato.handler import Handler
from ostinato.postgres import is_in_transaction
from ostinato_worker.attempt import Attempt
from ostinato_worker.output import encode_output
from ostinato_worker.transactions import LeaseLost, Transactions
from ostinato_worker.verdict import Committed


class LentTransaction(Transactions):
    def __init__(self, conn: Any) -> None:
        self._conn = conn

    async def perform(self, attempt: Attempt, payload: Any) -> Committed:
        """In a savepoint: what a failed attempt did is undone, as the worker undoes it."""
        assert attempt.bound is not None
        async with self._conn.transaction():
            try:
                attempt.ctx.tx = self._conn
                attempt.returns(await attempt.bound.call(payload, attempt.ctx))
                if attempt.overdue:
                    raise LeaseLost
                return Committed(encode_output(attempt.output))
            finally:
                attempt.ctx.tx = None


def check_tx(handler: Handler, tx: Any) -> Any:
    if not handler.transaction:
        if tx is not None:
            raise InvalidArgument("tx", tx, f"{handler.name} is not transactional: its ctx.tx is always None")
        return None
    if tx is None or not is_in_transaction(tx):
        rule = f"{handler.name} is transactional: give it an asyncpg connection on which a transaction has begun"
        raise InvalidArgument("tx", tx, rule)
    return tx

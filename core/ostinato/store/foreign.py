"""Statements that are not ours: what an operator wrote for the built-in handler `sql`."""

from collections.abc import Sequence
from typing import Any, Final

import asyncpg

from ostinato.postgres import PostgresPool

# Syntax, names and rights; and values that do not fit. The same statement with the same values fails again.
REFUSED: Final = (asyncpg.SyntaxOrAccessError, asyncpg.DataError)


async def run_foreign(pool: PostgresPool, text: str, values: Sequence[Any]) -> int:
    """Run one in a transaction of its own: how many rows it affected."""
    async with pool.acquire() as conn, conn.transaction():
        return affected(await conn.execute(text, *values))


def affected(status: str) -> int:
    """Postgres says "DELETE 3", "INSERT 0 3", and "CREATE TABLE"."""
    count = status.rpartition(" ")[2]
    return int(count) if count.isdigit() else 0

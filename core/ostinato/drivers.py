"""Runs a statement on the caller's own connection, whichever driver it came from, in the caller's transaction.

Known by the name of the package that the connection's class comes from, so that none of them has to be installed.
A synchronous connection answers at once; an asynchronous one gives back something to await.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from ostinato.errors import InvalidArgument
from ostinato.store.statements import PARAMETER, Statement

Rows = Sequence[Iterable[Any]]
Answer = TypeVar("Answer")
Read = Callable[[Rows], Answer]


def run(conn: Any, statement: Statement, given: Mapping[str, Any], read: Read[Answer]) -> Answer | Awaitable[Answer]:
    """`read` makes the answer from the rows, at once or when the driver has them."""
    answer: Answer | Awaitable[Answer] = _way(type(conn))(conn, statement, given, read)
    return answer


def _way(kind: type) -> Callable[..., Any]:
    for base in kind.__mro__:
        if way := WAYS.get(base.__module__.partition(".")[0]):
            return way
    raise _refused(kind)


def _refused(kind: type) -> InvalidArgument:
    return InvalidArgument(
        "conn",
        kind,
        "it must be an asyncpg connection or pool, a psycopg 3 connection, or a SQLAlchemy connection or session",
    )


def _asyncpg(conn: Any, statement: Statement, given: Mapping[str, Any], read: Read[Answer]) -> Awaitable[Answer]:
    if not isinstance(conn, (asyncpg.Connection, asyncpg.Pool, PoolConnectionProxy)):
        raise _refused(type(conn))

    async def later() -> Answer:
        return read(await statement.fetch(conn, **given))

    return later()


def _psycopg(
    conn: Any, statement: Statement, given: Mapping[str, Any], read: Read[Answer]
) -> Answer | Awaitable[Answer]:
    from psycopg import AsyncConnection, Connection
    from psycopg.rows import tuple_row

    text = PARAMETER.sub(r"%(\1)s", statement.named.replace("%", "%%"))

    async def later() -> Answer:
        async with conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(text, given)
            return read(await cursor.fetchall())

    if isinstance(conn, AsyncConnection):
        return later()
    if not isinstance(conn, Connection):
        raise _refused(type(conn))
    with conn.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(text, given)
        return read(cursor.fetchall())


def _sqlalchemy(
    conn: Any, statement: Statement, given: Mapping[str, Any], read: Read[Answer]
) -> Answer | Awaitable[Answer]:
    from sqlalchemy import Connection, text
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

    async def later() -> Answer:
        result = await conn.execute(text(statement.named), given)
        return read(result.all())

    if isinstance(conn, AsyncConnection | AsyncSession | async_scoped_session):
        return later()
    if not isinstance(conn, Connection | Session | scoped_session):
        raise _refused(type(conn))
    return read(conn.execute(text(statement.named), given).all())


WAYS: Final[dict[str, Callable[..., Any]]] = {
    "asyncpg": _asyncpg,
    "psycopg": _psycopg,
    "sqlalchemy": _sqlalchemy,
}

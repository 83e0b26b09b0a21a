"""A database as a program that stays uses it: a pool, and connections of their own for its threads and listeners."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import asyncpg

from ostinato.dsn import Dsn
from ostinato.postgres import PostgresConnection, PostgresPool, connect, open_pool
from ostinato.settings import Settings


def cut_off(conn: Any) -> None:
    """Ask it for nothing any more; a pool takes back by itself, and lends no more, what broke."""
    with suppress(asyncpg.InterfaceError):
        conn.terminate()


class Database:
    def __init__(self, pool: PostgresPool, dsn: Dsn | None, listen_dsn: Dsn | None) -> None:
        self.pool = pool
        self._dsn = dsn
        self._listen_dsn = listen_dsn

    @classmethod
    @asynccontextmanager
    async def open(
        cls, where: "str | Dsn | PostgresPool", settings: Settings, *, largest: int
    ) -> AsyncIterator["Database"]:
        """`where` is a DSN, or a pool of the caller's own, which stays open."""
        listen_dsn = Dsn.parse(settings.listen_dsn) if settings.listen_dsn else None
        if isinstance(where, asyncpg.Pool):
            yield cls(where, None, listen_dsn)
            return
        dsn = where if isinstance(where, Dsn) else Dsn.parse(where, pgbouncer=settings.pgbouncer)
        async with open_pool(dsn, smallest=2, largest=largest) as pool:
            yield cls(pool, dsn, listen_dsn)

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Any]:
        """A connection of the pool for one loop. If anything goes wrong on it, nobody asks it for anything again."""
        conn = await self.pool.acquire()
        try:
            yield conn
        except BaseException:
            cut_off(conn)
            raise
        finally:
            await self.pool.release(conn)

    @asynccontextmanager
    async def borrow(self, patience: float) -> AsyncIterator[Any]:
        """A connection of the pool for what a server does at once, or not at all: a cut network says nothing."""
        conn = await self.pool.acquire()
        try:
            async with asyncio.timeout(patience):
                yield conn
        except (TimeoutError, asyncio.CancelledError):
            cut_off(conn)  # else giving it back would wait for the answer
            raise
        finally:
            await self.pool.release(conn, timeout=patience)

    @property
    def can_listen(self) -> bool:
        """Behind PgBouncer in transaction mode nobody hears a notification."""
        return self._listen_dsn is not None or self._dsn is None or not self._dsn.pgbouncer

    @property
    def prepares(self) -> bool:
        """Whether what a session has prepared is found there again: not behind PgBouncer, where it may be another's."""
        if self._dsn:
            return not self._dsn.pgbouncer
        pool: Any = self.pool
        return bool(pool._connect_kwargs.get("statement_cache_size") != 0)  # as below

    def connect(self) -> AbstractAsyncContextManager[PostgresConnection]:
        """A connection of its own, in whichever thread's event loop asks for it; past a pooler, if we know how: there
        it would wait behind jobs that hold what the pooler has."""
        if dsn := self._listen_dsn or self._dsn:
            return connect(dsn)
        return self._as_the_pool_does()

    @asynccontextmanager
    async def _as_the_pool_does(self) -> AsyncIterator[PostgresConnection]:
        # asyncpg has no public way to open one more connection like those of a pool; its range is pinned, and a test
        # holds this.
        pool: Any = self.pool
        conn: PostgresConnection = await pool._connect(*pool._connect_args, **pool._connect_kwargs)
        try:
            yield conn
        finally:
            conn.terminate()

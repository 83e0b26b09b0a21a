"""Connections to Postgres, and what goes wrong with them in words that say what to check.

Behind PgBouncer in transaction mode each statement may meet another server, so nothing may be prepared on one and
used on the next. With its statement cache off asyncpg (from 0.29 on) sends Parse together with Bind and Execute, which
PgBouncer keeps together, also outside of a transaction; it costs a second Parse, hence only there.
PgBouncer is known by the DSN (`?pgbouncer=true`), by the setting, or by its refusal of a parameter that we send.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from ostinato.dsn import RULE, Dsn
from ostinato.errors import InvalidArgument, NotMigrated, Unreachable

SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 5.0
NAME: Final = "ostinato"
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
# What the statements are written for, whatever is the default of the database.
ISOLATION: Final = {"default_transaction_isolation": "read committed"}
# Who keeps a connection says the same few statements all day: planning them anew each time took a claim and its
# completion 5 % of their time, and a plan that knows the values is no better.
STEADY: Final = {"plan_cache_mode": "force_generic_plan"}
PostgresConnection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
PostgresPool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"

# Each advice is for the first kind of error that fits.
WHILE_CONNECTING: Final[dict[tuple[type[BaseException], ...], str]] = {
    (asyncpg.InvalidAuthorizationSpecificationError,): "check the user, the password and the server's pg_hba.conf",
    (asyncpg.InvalidCatalogNameError,): "create that database, or check its name",
    (asyncpg.TooManyConnectionsError,): "wait, raise max_connections, or put PgBouncer in front of it",
    (asyncpg.CannotConnectNowError,): "it starts up or shuts down: try again in a moment",
    (TimeoutError,): "check the host and the port, and whether a firewall or network policy is in between",
    (OSError, asyncpg.PostgresError): "check the host and the port, and whether the server is up",
    (asyncpg.InterfaceError, asyncpg.InternalClientError): "check that it is PostgreSQL that listens there",
}
IN_USE: Final[dict[tuple[type[BaseException], ...], str]] = {
    (asyncpg.InsufficientPrivilegeError,): "grant this user what it needs on the schema ostinato, or use its owner",
    (asyncpg.ReadOnlySQLTransactionError,): "this is a standby or read-only: use the DSN of the primary",
    (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError): (
        "PgBouncer in transaction mode is in between: add pgbouncer=true to the DSN's options, "
        "or set OSTINATO_PGBOUNCER=true"
    ),
    (asyncpg.QueryCanceledError,): "raise statement_timeout for this user, or ask for less at once",
    # Not BrokenPipeError: that is our own standard output's.
    (
        asyncpg.PostgresConnectionError,
        asyncpg.OperatorInterventionError,
        asyncpg.InterfaceError,
        ConnectionResetError,
        ConnectionAbortedError,
    ): "the connection was lost: check whether the server is up, then do it again",
}
# The internal one is what a connection says that the server has ended a moment before it was used.
DATABASE_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
# What is wrong with the values, and would be wrong again.
UNWRITABLE: Final = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, ValueError, TypeError, OverflowError)
Forbidden: TypeAlias = asyncpg.InsufficientPrivilegeError
Busy: TypeAlias = asyncpg.ObjectInUseError
MISSING: Final = (
    asyncpg.UndefinedTableError,
    asyncpg.InvalidSchemaNameError,
    asyncpg.UndefinedFunctionError,
    asyncpg.UndefinedColumnError,
)


def is_in_transaction(conn: object) -> bool:
    """Whether it is an asyncpg connection in one."""
    return isinstance(conn, asyncpg.Connection | PoolConnectionProxy) and conn.is_in_transaction()


@asynccontextmanager
async def connect(dsn: Dsn) -> AsyncIterator[PostgresConnection]:
    """One connection; what the server refuses or breaks while it is in use is raised as an error of ours."""
    conn, dsn = await _reach(dsn)
    try:
        with _explained(dsn):
            yield conn
    finally:
        await _close(conn)


@asynccontextmanager
async def open_pool(dsn: Dsn, *, smallest: int = 1, largest: int = 10) -> AsyncIterator[PostgresPool]:
    """A pool of such connections, for a program that stays."""
    first, dsn = await _reach(dsn)
    await _close(first)
    with _explained(dsn):
        pool = await asyncpg.create_pool(dsn.text, min_size=smallest, max_size=largest, **_options(dsn, STEADY))
        try:
            yield pool
        finally:
            await _close_pool(pool)


async def settle(dsn: Dsn) -> Dsn:
    """The same DSN, with the truth about PgBouncer as far as a new connection tells it."""
    conn, dsn = await _reach(dsn)
    await _close(conn)
    return dsn


async def _reach(dsn: Dsn) -> tuple[PostgresConnection, Dsn]:
    try:
        return await _try_both(dsn)
    except ValueError:  # asyncpg's own errors about a DSN are ValueErrors too
        raise InvalidArgument("dsn", dsn.shown, RULE) from None
    except tuple(kind for kinds in WHILE_CONNECTING for kind in kinds) as error:
        raise Unreachable(f"cannot connect to {dsn}: {_reason(error)}; {_advice(error, WHILE_CONNECTING)}") from None


async def _try_both(dsn: Dsn) -> tuple[PostgresConnection, Dsn]:
    try:
        return await asyncpg.connect(dsn.text, **_options(dsn)), dsn
    except asyncpg.PostgresError as error:
        if dsn.pgbouncer or "startup parameter" not in str(error):
            raise
    behind = replace(dsn, pgbouncer=True)
    return await asyncpg.connect(behind.text, **_options(behind)), behind


def _options(dsn: Dsn, more: Mapping[str, str] = NOTHING) -> dict[str, Any]:
    if dsn.pgbouncer:
        return {"timeout": SECONDS, "server_settings": {"application_name": NAME}, "statement_cache_size": 0}
    # A claim's estimated cost can be high enough for the JIT compiler, which takes far longer than the claim.
    return {"timeout": SECONDS, "server_settings": {"application_name": NAME, "jit": "off", **ISOLATION, **more}}


@contextmanager
def _explained(dsn: Dsn) -> Iterator[None]:
    try:
        yield
    except MISSING as error:
        raise NotMigrated(f"{dsn} has no schema of this version ({_reason(error)}): run `ostinato migrate`") from None
    except tuple(kind for kinds in IN_USE for kind in kinds) as error:
        raise Unreachable(f"{dsn} says: {_reason(error)}; {_advice(error, IN_USE)}") from None


def _reason(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return text or ("no answer" if isinstance(error, TimeoutError) else type(error).__name__)


def _advice(error: BaseException, advices: dict[tuple[type[BaseException], ...], str]) -> str:
    return next(advice for kinds, advice in advices.items() if isinstance(error, kinds))


async def _close_pool(pool: PostgresPool) -> None:
    """Whoever does not give a connection back, or a server that does not answer, holds up nobody for long."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await pool.close()
    except DATABASE_ERRORS:
        pool.terminate()
    except asyncio.CancelledError:
        pool.terminate()
        raise


async def _close(conn: PostgresConnection) -> None:
    try:
        await conn.close(timeout=2)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        conn.terminate()

"""Making room: partitions ahead of time, and what is old enough to go."""

from datetime import timedelta
from typing import Final

import asyncpg

from ostinato.store.statements import Connection, load, rows_in

SQL: Final = load("retention")
DAYS_AHEAD: Final = 14
BATCH: Final = 5_000


async def make_partitions(conn: Connection, *, days: int = DAYS_AHEAD) -> int:
    """Partitions of history for today and the coming days; returns how many were missing."""
    made: int = await SQL["make_partitions"].fetchval(conn, days=days)
    return made


async def prune_history(conn: Connection, *, keep: timedelta) -> list[str]:
    """Drop the partitions of days that ended longer than `keep` ago. Not inside a transaction."""
    dropped = []
    for part in await SQL["old_partitions"].fetch(conn, keep=keep):
        try:
            await conn.execute(part["detach"])
        except (asyncpg.UndefinedTableError, asyncpg.ObjectNotInPrerequisiteStateError):
            continue  # Another prune was faster, or is at it.
        await conn.execute(part["drop"])
        dropped.append(part["name"])
    for left in await SQL["detached_partitions"].fetch(conn, keep=keep):
        await conn.execute(left["drop"])
    return dropped


async def prune_idempotency_keys(conn: Connection, *, limit: int = BATCH) -> int:
    """Forget keys that have expired."""
    return rows_in(await SQL["prune_idempotency_keys"].execute(conn, limit=limit))


async def prune_workers(conn: Connection, *, keep: timedelta, limit: int = BATCH) -> int:
    """Forget workers that ended longer than `keep` ago."""
    return rows_in(await SQL["prune_workers"].execute(conn, keep=keep, limit=limit))


async def prune_dead_letters(conn: Connection, *, keep: timedelta, limit: int = BATCH) -> int:
    """Only when somebody asked for it: nothing else ever drops a dead letter."""
    return rows_in(await SQL["prune_dead_letters"].execute(conn, keep=keep, limit=limit))


async def prune_limits(conn: Connection) -> int:
    """Forget limits that no live worker says any more; returns how many of their slots went."""
    return rows_in(await SQL["prune_limits"].execute(conn))


async def prune_events(conn: Connection, *, keep: timedelta, limit: int = BATCH) -> int:
    """Forget what handlers told longer than `keep` ago."""
    return rows_in(await SQL["prune_events"].execute(conn, keep=keep, limit=limit))

"""Brings a database to the schema that this version of the code expects, and never half of it.

Each file of `migrations/` is applied once, in order, each in a transaction of its own that holds an advisory lock, so
that two migrators at once are harmless. A file that was changed after it was applied is an error, never a surprise.
"""

import hashlib
import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

import asyncpg

from ostinato.errors import MigrationError
from ostinato.store.statements import Connection, load

FILE: Final = re.compile(r"(\d{4})_(\w+)\.sql")
PACKAGED: Final = Path(__file__).parent / "migrations"
CHECKED_OUT: Final = Path(__file__).parents[2] / "migrations"

SQL: Final = load("migrations")


class TransactionalConnection(Connection, Protocol):
    def transaction(self, *, isolation: Any = ...) -> AbstractAsyncContextManager[Any]: ...


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    sql: str

    @cached_property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.version:04}_{self.name}.sql"


@dataclass(frozen=True)
class Applied:
    version: int
    name: str
    checksum: str

    def __str__(self) -> str:
        return f"{self.version:04}_{self.name}.sql"


def read_migrations(folder: Path | None = None) -> list[Migration]:
    """The files of a folder, in order; by default those that came with this package."""
    folder = folder or (PACKAGED if PACKAGED.is_dir() else CHECKED_OUT)
    found = [
        Migration(int(match[1]), match[2], path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.sql"))
        if (match := FILE.fullmatch(path.name))
    ]
    for place, migration in enumerate(found, 1):
        if migration.version != place:
            raise MigrationError(f"{folder} should hold number {place:04} next, but holds {migration}")
    if not found:
        raise MigrationError(f"{folder} holds no migrations")
    return found


async def pending(conn: Connection, migrations: Sequence[Migration]) -> list[Migration]:
    """What is not applied yet; an error if what is applied differs from the files."""
    applied = await _applied(conn)
    known = {migration.version: migration for migration in migrations}
    for past in applied:
        _compare(past, known.get(past.version))
    done = {past.version for past in applied}
    return [migration for migration in migrations if migration.version not in done]


async def migrate(conn: TransactionalConnection, migrations: Sequence[Migration]) -> list[Migration]:
    """Apply what is pending; what another migrator applied meanwhile is not applied again."""
    done: list[Migration] = []
    while (migration := await _apply_next(conn, migrations)) is not None:
        done.append(migration)
    return done


def script(migrations: Sequence[Migration]) -> str:
    """The same as plain SQL, for people who apply it by their own means."""
    parts = [SQL["make_records"].text + ";"]
    for migration in migrations:
        record = (
            "insert into ostinato.schema_migrations (version, name, checksum)\n"
            f"values ({migration.version}, '{migration.name}', '{migration.checksum}');"
        )
        parts.append(f"-- {migration}\n\nbegin;\n\n{migration.sql.rstrip()}\n\n{record}\n\ncommit;")
    return "\n\n".join(parts) + "\n"


async def _apply_next(conn: TransactionalConnection, migrations: Sequence[Migration]) -> Migration | None:
    # Each statement sees what the migrator before us committed, whatever isolation is this database's default.
    async with conn.transaction(isolation="read_committed"):
        await SQL["lock"].execute(conn)
        await SQL["make_records"].execute(conn)
        todo = await pending(conn, migrations)
        if not todo:
            return None
        await _apply(conn, todo[0])
        return todo[0]


async def _apply(conn: Connection, migration: Migration) -> None:
    # Waiting for a lock on a table makes every reader who comes later wait behind us: rather give up and say so.
    await SQL["be_brief"].execute(conn)
    try:
        await conn.execute(migration.sql)
    except asyncpg.LockNotAvailableError:
        raise MigrationError(
            f"{migration} waited 5 s for a lock on a table that somebody uses; nothing was changed: "
            "end the long transaction (`ostinato doctor` shows it) and migrate again"
        ) from None
    except asyncpg.PostgresError as error:
        raise MigrationError(f"{migration} failed, nothing of it was applied: {error}") from error
    await SQL["record"].execute(conn, version=migration.version, name=migration.name, checksum=migration.checksum)


async def _applied(conn: Connection) -> list[Applied]:
    if not await SQL["has_records"].fetchval(conn):
        return []
    return [Applied(*row) for row in await SQL["applied"].fetch(conn)]


def _compare(past: Applied, file: Migration | None) -> None:
    if file is None:
        raise MigrationError(
            f"the database has {past}, which is missing here: "
            "this ostinato is older than the database's schema, so upgrade it"
        )
    if (file.name, file.checksum) != (past.name, past.checksum):
        raise MigrationError(
            f"{file} was changed after it was applied as {past}: put the file back as it was and add a new one"
        )

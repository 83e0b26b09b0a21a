"""Brings a database to the schema that this version of the code expects, and never half of it.

Each file of `migrations/` is applied once, in order, each in a transaction of its own that holds an advisory lock, so
that two migrators at once are harmless. A file that was changed after it was applied is an error, never a surprise.

A file that begins with the line "-- no transaction" may build an index concurrently on a big table. Its statements,
each ending with ";" at the end of a line, run one by one on a connection aside, while ours holds the lock. They must
bear to be begun again: drop what an interrupted try left behind, then make it.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
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

NO_TRANSACTION: Final = "-- no transaction\n"
END: Final = re.compile(r";[ \t]*$", re.MULTILINE)
SECONDS: Final = 0.1  # between two looks whether another migrator is done

SQL: Final = load("migrations")


class TransactionalConnection(Connection, Protocol):
    def transaction(self, *, isolation: Any = ...) -> AbstractAsyncContextManager[Any]: ...


Aside = Callable[[], AbstractAsyncContextManager[Connection]]


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    sql: str

    @cached_property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def transactional(self) -> bool:
        return not self.sql.startswith(NO_TRANSACTION)

    @property
    def statements(self) -> list[str]:
        """Of a file without a transaction: a server takes several at once only as a transaction."""
        parts = (part.strip() for part in END.split(self.sql.removeprefix(NO_TRANSACTION)))
        return [part for part in parts if part]

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


async def migrate(
    conn: TransactionalConnection, migrations: Sequence[Migration], *, aside: Aside | None = None
) -> list[Migration]:
    """Apply what is pending; what another migrator applied meanwhile is not applied again.

    `aside` opens a second connection to the same database, for files that want no transaction.
    """
    done: list[Migration] = []
    while True:
        # Each statement sees what the migrator before us committed, whatever isolation is this database's default.
        async with conn.transaction(isolation="read_committed"):
            ours = await SQL["try_lock"].fetchval(conn)
            migration = await _apply_next(conn, migrations, aside) if ours else None
        if migration is not None:
            done.append(migration)
        elif ours:
            return done
        else:
            await asyncio.sleep(SECONDS)


def script(migrations: Sequence[Migration]) -> str:
    """The same as plain SQL, for people who apply it by their own means."""
    parts = [SQL["make_records"].text + ";"]
    for migration in migrations:
        record = (
            "insert into ostinato.schema_migrations (version, name, checksum)\n"
            f"values ({migration.version}, '{migration.name}', '{migration.checksum}');"
        )
        body = f"{migration.sql.rstrip()}\n\n{record}"
        parts.append(f"-- {migration}\n\n" + (f"begin;\n\n{body}\n\ncommit;" if migration.transactional else body))
    return "\n\n".join(parts) + "\n"


async def _apply_next(conn: Connection, migrations: Sequence[Migration], aside: Aside | None) -> Migration | None:
    await SQL["make_records"].execute(conn)
    todo = await pending(conn, migrations)
    if not todo:
        return None
    migration = todo[0]
    await (_apply(conn, migration) if migration.transactional else _apply_aside(conn, migration, aside))
    await SQL["record"].execute(conn, version=migration.version, name=migration.name, checksum=migration.checksum)
    return migration


async def _apply_aside(conn: Connection, migration: Migration, aside: Aside | None) -> None:
    if aside is None:
        raise MigrationError(f"{migration} wants no transaction: give `migrate` a second connection, `aside`")
    await SQL["be_patient"].execute(conn)
    try:
        async with aside() as other:
            for statement in migration.statements:
                await other.execute(statement)
    except asyncpg.PostgresError as error:
        raise MigrationError(f"{migration} failed; migrating again begins it anew: {error}") from error


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

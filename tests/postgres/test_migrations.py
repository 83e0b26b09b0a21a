"""Migrations: once each, in order, safe to run twice at once, and never on a changed history."""

import asyncio
import re
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from ostinato.errors import MigrationError
from ostinato.migrations import CHECKED_OUT, Migration, migrate, pending, read_migrations, script


@pytest.fixture
async def empty(empty_dsn: str) -> AsyncIterator[Any]:
    conn = await asyncpg.connect(empty_dsn)
    yield conn
    await conn.close()


TWO = [
    Migration(1, "one", "create table ostinato.one (n int);"),
    Migration(2, "two", "insert into ostinato.one values (1);"),
]


async def test_each_is_applied_once_and_in_order(empty: Any) -> None:
    first = await migrate(empty, TWO[:1])
    second = await migrate(empty, TWO)
    third = await migrate(empty, TWO)

    assert [first, second, third] == [TWO[:1], TWO[1:], []]
    assert await empty.fetchval("select count(*) from ostinato.one") == 1
    rows = await empty.fetch("select version, name, checksum from ostinato.schema_migrations order by version")
    assert [tuple(row) for row in rows] == [(each.version, each.name, each.checksum) for each in TWO]


async def test_many_migrators_at_once_are_harmless(empty: Any, empty_dsn: str) -> None:
    conns = [await asyncpg.connect(empty_dsn) for _ in range(6)]

    done = await asyncio.gather(*(migrate(conn, read_migrations()) for conn in conns))

    assert sorted(each.version for part in done for each in part) == [each.version for each in read_migrations()]
    for conn in conns:
        await conn.close()


async def test_a_changed_file_is_an_error_that_names_it(empty: Any) -> None:
    await migrate(empty, TWO)

    with pytest.raises(MigrationError, match=r"0002_two.sql was changed after it was applied"):
        await migrate(empty, [TWO[0], Migration(2, "two", "select 1;")])
    with pytest.raises(MigrationError, match=r"0002_zwei.sql was changed after it was applied as 0002_two.sql"):
        await pending(empty, [TWO[0], Migration(2, "zwei", TWO[1].sql)])


async def test_a_missing_file_is_an_error_that_names_it(empty: Any) -> None:
    await migrate(empty, TWO)

    with pytest.raises(MigrationError, match=r"0002_two.sql, which is missing here: this ostinato is older"):
        await migrate(empty, TWO[:1])


async def test_a_failing_one_leaves_nothing_of_itself_and_keeps_those_before(empty: Any) -> None:
    broken = Migration(2, "broken", "create table ostinato.half (n int); select 1 / 0;")

    with pytest.raises(MigrationError, match=r"0002_broken.sql failed, nothing of it was applied: division by zero"):
        await migrate(empty, [TWO[0], broken])

    assert await empty.fetchval("select to_regclass('ostinato.half')") is None
    assert await pending(empty, TWO) == [TWO[1]]


async def test_one_that_waits_for_a_lock_gives_up_before_readers_pile_up(empty: Any, empty_dsn: str) -> None:
    await migrate(empty, TWO)
    holder = await asyncpg.connect(empty_dsn)
    transaction = holder.transaction()
    await transaction.start()
    await holder.execute("select * from ostinato.one")

    with pytest.raises(MigrationError, match="waited 5 s for a lock"):
        await migrate(empty, [*TWO, Migration(3, "three", "alter table ostinato.one add m int;")])

    await transaction.rollback()
    await holder.close()


async def test_the_printed_script_does_the_same(empty: Any) -> None:
    await empty.execute(script(read_migrations()))

    assert await pending(empty, read_migrations()) == []
    assert await empty.fetchval("select created from ostinato.enqueue('work')")


def test_numbers_have_no_gaps(tmp_path: Path) -> None:
    (tmp_path / "0001_one.sql").write_text("select 1;")
    (tmp_path / "0003_three.sql").write_text("select 1;")

    with pytest.raises(MigrationError, match=r"should hold number 0002 next, but holds 0003_three.sql"):
        read_migrations(tmp_path)
    with pytest.raises(MigrationError, match="holds no migrations"):
        read_migrations(tmp_path / "nowhere")


def test_the_wheel_carries_the_migrations_and_the_statements(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=CHECKED_OUT.parent, check=True, capture_output=True)

    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())

    assert {f"ostinato/migrations/{path.name}" for path in CHECKED_OUT.glob("*.sql")} <= held
    assert {"ostinato/store/sql/moves.sql", "ostinato/py.typed", "ostinato_cli/main.py"} <= held


BIG = r"ostinato\.(jobs|job_history|dead_letters)"
BLOCKING = {
    rf"create (unique )?index (?!concurrently).*\bon {BIG}": "builds an index under a lock that stops writers",
    rf"alter table {BIG} (add constraint(?!.*not valid)|alter (column )?\w+ (type|set not null))": "reads every row",
    rf"(update|delete from) {BIG} ": "rewrites a table in one go",
    r"\b(cluster|vacuum full|reindex(?! .*concurrently))\b": "locks readers out",
}


def blocks(sql: str) -> str | None:
    """Why it would block somebody, if it would."""
    line = " ".join(sql.split())
    return next((why for pattern, why in BLOCKING.items() if re.search(pattern, line, re.IGNORECASE)), None)


def test_no_later_migration_blocks_readers_or_writers_of_a_big_table() -> None:
    """The first three files make the tables, which are empty then; from the fourth on they may be big."""
    for migration in read_migrations()[3:]:
        for statement in migration.sql.split(";"):
            assert blocks(statement) is None, f"{migration}: {blocks(statement)}"


async def test_many_migrators_are_harmless_whatever_isolation_is_the_default(empty: Any, empty_dsn: str) -> None:
    name = await empty.fetchval("select current_database()")
    await empty.execute(f"alter database {name} set default_transaction_isolation = 'repeatable read'")
    conns = [await asyncpg.connect(empty_dsn) for _ in range(4)]

    done = await asyncio.gather(*(migrate(conn, read_migrations()) for conn in conns))

    assert sum(map(len, done)) == len(read_migrations())
    for conn in conns:
        await conn.close()


def test_the_patterns_of_what_blocks_find_what_blocks() -> None:
    blocking = [
        "create index on ostinato.jobs (queue);",
        "create unique index jobs_x on\n    ostinato.job_history (id);",
        "alter table ostinato.jobs add constraint c check (attempt < 9);",
        "alter table ostinato.jobs\n    alter column queue type varchar;",
        "update ostinato.dead_letters set queue = 'x';",
        "vacuum full ostinato.jobs;",
    ]
    fine = [
        "alter table ostinato.jobs add constraint c check (attempt < 9) not valid;",
        "create table ostinato.x (n int);",
    ]

    assert [blocks(statement) is not None for statement in blocking] == [True] * len(blocking)
    assert [blocks(statement) for statement in fine] == [None] * len(fine)

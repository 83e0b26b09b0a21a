"""Migrations: once each, in order, safe to run twice at once, and never on a changed history."""

import asyncio
import re
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from ostinato.dsn import Dsn
from ostinato.embedded import wheel_bin_dirs
from ostinato.errors import MigrationError
from ostinato.migrations import CHECKED_OUT, Migration, migrate, pending, read_migrations, script
from ostinato.postgres import connect
from tests.postgres.conftest import on


@pytest.fixture
async def empty(empty_dsn: str) -> AsyncIterator[Any]:
    conn = await asyncpg.connect(empty_dsn)
    yield conn
    await conn.close()


TWO = [
    Migration(1, "one", "create table ostinato.one (n int);"),
    Migration(2, "two", "insert into ostinato.one values (1);"),
]


INDEX = Migration(
    3,
    "index",
    """-- no transaction
drop index concurrently if exists ostinato.one_n;
create index concurrently one_n on ostinato.one (n);
""",
)


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


# without a transaction


def aside_of(dsn: str) -> Any:
    return partial(connect, Dsn.parse(dsn))


async def has_index(conn: Any) -> bool:
    return bool(await conn.fetchval("select indisvalid from pg_index where indexrelid = to_regclass('ostinato.one_n')"))


async def test_an_index_is_built_concurrently_and_recorded(empty: Any, empty_dsn: str) -> None:
    done = await migrate(empty, [*TWO, INDEX], aside=aside_of(empty_dsn))

    assert done == [*TWO, INDEX]
    assert await has_index(empty)
    assert await pending(empty, [*TWO, INDEX]) == []


async def test_migrators_that_wait_do_not_hold_up_what_they_wait_for(empty: Any, empty_dsn: str) -> None:
    """Building concurrently waits for every snapshot, so a waiting migrator must have none."""
    conns = [await asyncpg.connect(empty_dsn) for _ in range(6)]

    async with asyncio.timeout(60):
        done = await asyncio.gather(
            *(migrate(conn, [*TWO, INDEX], aside=aside_of(empty_dsn)) for conn in conns),
        )

    assert sorted(each.version for part in done for each in part) == [1, 2, 3]
    assert await has_index(empty)
    for conn in conns:
        await conn.close()


async def test_writers_go_on_while_the_index_waits_for_an_old_one(empty: Any, empty_dsn: str) -> None:
    await migrate(empty, TWO)
    old, writer = await asyncpg.connect(empty_dsn), await asyncpg.connect(empty_dsn)
    await old.execute("begin; insert into ostinato.one values (2)")
    migrating = asyncio.create_task(migrate(empty, [*TWO, INDEX], aside=aside_of(empty_dsn)))
    while not await writer.fetchval("select count(*) from pg_locks where not granted"):
        await asyncio.sleep(0.01)

    await writer.execute("insert into ostinato.one values (3)", timeout=5)

    assert not migrating.done()
    await old.execute("commit")
    assert await migrating == [INDEX]
    await old.close()
    await writer.close()


async def test_one_that_failed_half_way_is_begun_again(empty: Any, empty_dsn: str) -> None:
    unique = Migration(3, "index", INDEX.sql.replace("create index", "create unique index"))
    await migrate(empty, TWO)
    await empty.execute("insert into ostinato.one values (1)")

    with pytest.raises(
        MigrationError, match=r"0003_index.sql failed; migrating again begins it anew: could not create"
    ):
        await migrate(empty, [*TWO, unique], aside=aside_of(empty_dsn))
    left = await empty.fetchval("select to_regclass('ostinato.one_n') is not null")
    await empty.execute("truncate ostinato.one")

    assert (left, await has_index(empty)) == (True, False)
    assert await migrate(empty, [*TWO, unique], aside=aside_of(empty_dsn)) == [unique]
    assert await has_index(empty)


async def test_without_a_second_connection_it_is_an_error_that_asks_for_one(empty: Any) -> None:
    with pytest.raises(
        MigrationError, match=r"0003_index.sql wants no transaction: give `migrate` a second connection"
    ):
        await migrate(empty, [*TWO, INDEX])

    assert await pending(empty, [*TWO, INDEX]) == [INDEX]


def test_psql_applies_the_printed_script_too(empty_dsn: str) -> None:
    psql = wheel_bin_dirs()[18] / "psql"
    printed = script([*TWO, INDEX])

    subprocess.run(
        [psql, empty_dsn, "-v", "ON_ERROR_STOP=1"], input=printed, text=True, check=True, capture_output=True
    )

    async def look(conn: Any) -> Any:
        return await has_index(conn), await pending(conn, [*TWO, INDEX])

    assert on(empty_dsn, look) == (True, [])


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

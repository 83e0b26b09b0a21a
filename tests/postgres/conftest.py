"""Real servers: PostgreSQL 18 and 16 from the wheel, Debian's if installed, and OSTINATO_TEST_DSN if set."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from ostinato.embedded import EmbeddedPostgres, wheel_bin_dirs
from ostinato.migrations import migrate, read_migrations

TEMPLATE = "ostinato_template"
FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "256MB",
    "max_connections": "100",
    "max_prepared_transactions": "5",
}
DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
GIVEN = os.environ.get("OSTINATO_TEST_DSN")


class Server(Protocol):
    @property
    def dsn(self) -> str: ...
    def dsn_for(self, database: str) -> str: ...


class GivenServer:
    """Somebody's own server: databases are made in it and dropped again."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def dsn_for(self, database: str) -> str:
        return urlunsplit(urlsplit(self.dsn)._replace(path=f"/{database}"))


BINARIES = {f"wheel-{version}": path for version, path in wheel_bin_dirs().items()} | {
    f"debian-{path.parent.name}": path for path in DEBIAN if (path / "postgres").exists()
}
NAMES = ["wheel-18", *sorted(set(BINARIES) - {"wheel-18"}), *(["given"] if GIVEN else [])]


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Not tmp_path, which only root could enter when the tests run as root."""
    path = Path(tempfile.mkdtemp(prefix="ostinato-test-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session", params=NAMES)
def server(request: pytest.FixtureRequest, folder: Path) -> Iterator[Server]:
    if request.param == "given":
        given = GivenServer(str(GIVEN))
        make_template(given)
        yield given
        on(given.dsn, lambda conn: conn.execute(f"drop database {TEMPLATE}"))
        return
    yield from started(request.param, folder)


def started(name: str, folder: Path) -> Iterator[Server]:
    with EmbeddedPostgres(folder / name, bin_dir=BINARIES[name], settings=FAST) as embedded:
        make_template(embedded)
        yield embedded


@pytest.fixture
def empty_dsn(server: Server) -> Iterator[str]:
    """A fresh database without our schema."""
    yield from database(server, "template1")


@pytest.fixture
def dsn(server: Server) -> Iterator[str]:
    """A fresh, migrated database."""
    yield from database(server, TEMPLATE)


@pytest.fixture
async def connect(dsn: str) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    """Opens connections, and closes them after the test."""
    async with AsyncExitStack() as stack:

        async def opened() -> Any:
            conn = await asyncpg.connect(dsn)
            stack.push_async_callback(conn.close)
            return conn

        yield opened


@pytest.fixture
async def conn(connect: Callable[[], Awaitable[Any]]) -> Any:
    return await connect()


def database(server: Server, template: str) -> Iterator[str]:
    name = f"ostinato_test_{os.urandom(4).hex()}"
    on(server.dsn, lambda conn: conn.execute(f"create database {name} template {template}"))
    yield server.dsn_for(name)
    on(server.dsn, lambda conn: conn.execute(f"drop database {name} with (force)"))


def make_template(server: Server) -> None:
    on(server.dsn, lambda conn: conn.execute(f"drop database if exists {TEMPLATE}"))
    on(server.dsn, lambda conn: conn.execute(f"create database {TEMPLATE} template template1"))
    on(server.dsn_for(TEMPLATE), lambda conn: migrate(conn, read_migrations()))


def on(dsn: str, act: Callable[[Any], Awaitable[Any]]) -> Any:
    """Do one thing on a connection of its own, from a test that is not async."""

    async def run() -> Any:
        conn = await asyncpg.connect(dsn)
        try:
            return await act(conn)
        finally:
            await conn.close()

    return asyncio.run(run())

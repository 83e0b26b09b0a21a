"""Workers are tested on one server: that the SQL holds on others is shown in `tests/postgres`."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ostinato_worker.isolation import Isolator
from tests.postgres.conftest import Server, conn, connect, dsn, empty_dsn, folder, started
from tests.worker.process import worker

__all__ = ["conn", "connect", "dsn", "empty_dsn", "folder"]


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[Server]:
    yield from started("wheel-18", folder / "worker")


@pytest.fixture
async def isolator() -> AsyncIterator[Isolator]:
    isolator = Isolator(["tests.worker.jobs"], grace=0.3)
    await isolator.start()
    yield isolator
    await isolator.close()


@pytest.fixture
def port(dsn: str, tmp_path: Path) -> Iterator[int]:
    """Where a worker answers."""
    with worker(tmp_path, dsn, "--jobs", "shop", "--health-port", "0") as process:
        yield int(process.until(r"on port (\d+)")[1])

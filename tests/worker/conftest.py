"""Workers as processes of their own, on a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import dsn, empty_dsn, folder, server
from tests.worker.process import worker

__all__ = ["dsn", "empty_dsn", "folder", "server"]


@pytest.fixture
def port(dsn: str, tmp_path: Path) -> Iterator[int]:
    """Where a worker answers."""
    with worker(tmp_path, dsn, "--jobs", "shop", "--health-port", "0") as process:
        yield int(process.until(r"on port (\d+)")[1])

"""Programs that run an embedded server, and what can be seen of their processes."""

import asyncio
import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg

import ostinato

CORE = Path(ostinato.__file__).parents[1]
PACKAGES = os.pathsep.join([str(CORE), str(Path(asyncpg.__file__).parents[1])])
# The tests' own interpreter may lie where only root can go: then the system's, if it is of the same version.
PYTHONS = [sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"]
FAST = {"fsync": "off"}

# A program of its own: starts a server, reports it, then waits until its standard input says what to do.
PROGRAM = """
import json, os, sys
from pathlib import Path
from ostinato.embedded import EmbeddedPostgres
from ostinato.errors import EmbeddedPostgresError
try:
    with EmbeddedPostgres(Path(sys.argv[1]), settings={"fsync": "off"}) as server:
        if "fork" in sys.argv and (child := os.fork()) == 0:
            sys.stdin.read()
            os._exit(0)
        print(json.dumps({"dsn": server.dsn, "pid": server.pid}), flush=True)
        sys.stdin.readline()
except EmbeddedPostgresError as error:
    print(json.dumps({"error": str(error)}), flush=True)
"""


class Program:
    def __init__(self, data_dir: Path, *arguments: str, python: str = sys.executable, **options: Any) -> None:
        command = [python, "-c", PROGRAM, str(data_dir), *arguments]
        environment = {**os.environ, "PYTHONPATH": PACKAGES}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, cwd="/", **options)
        assert self.process.stdout is not None
        self.said: dict[str, Any] = json.loads(self.process.stdout.readline())

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:  # closes its standard input, by which it ends, and waits
            pass


def query(dsn: str, *statements: str) -> Any:
    async def run() -> Any:
        connection = await asyncpg.connect(dsn)
        try:
            return [await connection.fetchval(statement) for statement in statements][-1]
        finally:
            await connection.close()

    return asyncio.run(run())


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@contextlib.contextmanager
def gone_within(pid: int, seconds: float) -> Iterator[None]:
    """The process ends during, or soon after, the block. A pidfd is readable when its process has ended."""
    handle = os.pidfd_open(pid)
    try:
        yield
        assert select.select([handle], [], [], seconds)[0], f"process {pid} is still there"
    finally:
        os.close(handle)


def children() -> set[int]:
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def socket_dir(dsn: str) -> Path:
    return Path(dsn.partition("host=")[2].partition("&")[0])

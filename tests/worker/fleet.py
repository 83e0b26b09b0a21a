"""Workers as processes of their own, and a leader's duties for as long as a test needs them."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg

from ostinato import store

ROOT = Path(__file__).parents[2]
PROGRAM = """
import asyncio, json, logging, sys
from ostinato_worker import Worker
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
options = json.loads(sys.argv[2])
asyncio.run(Worker(sys.argv[1], "tests.worker.shop", **options).run())
"""
PAUSE = 0.05


class WorkerProcess:
    def __init__(self, dsn: str, options: str, lease: str, log: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OSTINATO_", "PG"))}
        self.log = log
        with log.open("w") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, dsn, options],
                env=kept | {"OSTINATO_LEASE": lease},
                cwd=ROOT,
                stderr=stderr,
            )

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self, seconds: float = 30) -> int:
        return await asyncio.wait_for(asyncio.to_thread(self.process.wait), seconds)

    @property
    def said(self) -> str:
        return self.log.read_text()


@contextmanager
def workers(
    dsn: str, number: int, folder: Path, *, concurrency: int = 8, lease: str = "3s", grace: str = "10s"
) -> Iterator[list[WorkerProcess]]:
    options = f'{{"concurrency": {concurrency}, "grace": "{grace}"}}'
    fleet = [WorkerProcess(dsn, options, lease, folder / f"worker-{n}.log") for n in range(number)]
    try:
        yield fleet
    finally:
        for each in fleet:
            if each.process.poll() is None:
                each.send(signal.SIGCONT)
                each.process.kill()
            each.process.wait()


@asynccontextmanager
async def leader(dsn: str) -> AsyncIterator[None]:
    """Declares workers dead and takes back what they held; a server that is away is waited for."""
    task = asyncio.create_task(_lead(dsn))
    yield
    task.cancel()
    await asyncio.wait([task])


async def _lead(dsn: str) -> None:
    while True:
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            conn = await asyncpg.connect(dsn)
            try:
                while True:
                    await store.expire_workers(conn)
                    await store.recover(conn, max_attempts=20, poison=20)
                    await asyncio.sleep(PAUSE)
            finally:
                conn.terminate()
        await asyncio.sleep(PAUSE)


async def until(look: Callable[[], Any], seconds: float = 60) -> Any:
    """Until what it looks at is true; a server that is away is waited for."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                if found := await look():
                    return found
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                pass
            await asyncio.sleep(0.02)


async def nothing_live(conn: Any) -> bool:
    return bool(await conn.fetchval("select not exists (select from ostinato.jobs)"))

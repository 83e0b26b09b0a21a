"""What every adapter in Python speaks with the harness: the commands, and what a worker says while it works.

The words are in ../../README.md; protocol.mjs is the same for node. All times are CLOCK_MONOTONIC seconds, which
processes and languages have in common. This runs in the peers' own venv: it imports only
the standard library.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar, NoReturn

DSN = os.environ.get("BENCH_DSN", "")
HANDLER = os.environ.get("BENCH_HANDLER", "noop")
BUSINESS_INSERT = "INSERT INTO bench_biz (job) VALUES ({})"
REPORT_SECONDS = 0.02
WARM_UP = -1

now = time.monotonic


def emit(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def versions(*packages: str) -> dict[str, str]:
    return {package: importlib.metadata.version(package) for package in packages}


class Progress:
    """Counts handler calls; says F at the first start, H with the count now and then, L for a latency probe."""

    def __init__(self) -> None:
        self.count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begun = asyncio.Event()

    def hit(self) -> None:
        if not self.count:
            emit("F", now())
            self._begin()
        self.count += 1

    def probe(self, i: int) -> None:
        emit("L", i, now())
        self.count += 1

    def _begin(self) -> None:
        if self._loop:
            self._loop.call_soon_threadsafe(self._begun.set)  # handlers may be in threads

    async def report(self) -> NoReturn:
        self._loop = asyncio.get_running_loop()
        # Fifty looks a second would be most of what an idle worker costs.
        await self._begun.wait()
        seen = 0
        while True:
            await asyncio.sleep(REPORT_SECONDS)
            if self.count != seen:
                seen = self.count
                emit("H", seen, now())


progress = Progress()


class Peer:
    """What an adapter fills in."""

    meta: ClassVar[dict[str, Any]] = {}

    async def setup(self) -> None:
        """Make the peer's schema in an empty database."""
        raise NotImplementedError

    async def open(self) -> None:
        """Connect, in order to enqueue."""
        raise NotImplementedError

    async def close(self) -> None:
        """Most leave it to the end of the process."""

    async def enqueue_one(self, i: int) -> None:
        raise NotImplementedError

    async def enqueue_many(self, ids: Sequence[int]) -> None:
        raise NotImplementedError

    async def work(self, handler: str, conf: dict[str, Any]) -> None:
        """Until cancelled, or until the process is told to end."""
        raise NotImplementedError


def main(peer: Peer, run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run) -> None:
    command, *words = sys.argv[1:]
    if command == "meta":
        return emit(json.dumps(peer.meta))
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        run(COMMANDS[command](peer, *words))
    sys.stdout.flush()
    os._exit(0)  # a peer's threads and open connections may not hold the process back


async def setup(peer: Peer) -> None:
    await peer.setup()


async def enqueue(peer: Peer, jobs: str, chunk: str) -> None:
    await peer.open()
    began = now()
    await (_one_by_one(peer, int(jobs)) if chunk == "1" else _in_bulk(peer, int(jobs), int(chunk)))
    emit(json.dumps({"seconds": now() - began}))
    await peer.close()


async def _one_by_one(peer: Peer, jobs: int) -> None:
    for i in range(jobs):
        await peer.enqueue_one(i)


async def _in_bulk(peer: Peer, jobs: int, chunk: int) -> None:
    for first in range(0, jobs, chunk):
        await peer.enqueue_many(range(first, min(jobs, first + chunk)))


async def produce(peer: Peer, jobs: str, every: str) -> None:
    await peer.open()
    await peer.enqueue_one(WARM_UP)
    await asyncio.sleep(0.3)
    due, stamps = now(), []
    for i in range(int(jobs)):
        due += float(every)
        await asyncio.sleep(max(0, due - now()))
        called = now()
        await peer.enqueue_one(i)
        stamps.append((i, called, now()))
    for stamp in stamps:
        emit("P", *stamp)
    await peer.close()


async def work(peer: Peer, handler: str, conf: str) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    emit("READY")
    await loop.run_in_executor(None, sys.stdin.readline)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    coroutines: list[Coroutine[Any, Any, Any]] = [
        progress.report(),
        peer.work(handler, json.loads(conf)),
        stop.wait(),
    ]
    done, _ = await asyncio.wait(map(asyncio.create_task, coroutines), return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()  # a crashed worker must be loud


COMMANDS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "setup": setup,
    "enqueue": enqueue,
    "produce": produce,
    "work": work,
}

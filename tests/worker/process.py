"""`ostinato worker` as a process of its own, whose log a test waits for."""

import http.client
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGTERM
from typing import Any, TypeVar

from ostinato import enqueue
from tests.cli.command import COMMAND, Done, environment
from tests.postgres.conftest import on

T = TypeVar("T")
JOBS = '''\
"""The handlers of a shop, as its people would write them."""

import asyncio
import signal
import threading
from contextlib import asynccontextmanager

from ostinato import Context, PermanentError, SyncContext, job


@asynccontextmanager
async def lifespan():
    print("opened", flush=True)
    yield {"greeting": "hello"}
    print("closed", flush=True)


@asynccontextmanager
async def never_closed():
    yield
    threading.Event().wait()


@job("greet")
async def greet(payload: dict, ctx: Context):
    ctx.logger.info("%s %s", ctx.state and ctx.state["greeting"], payload.get("name"))


@job("refuse")
async def refuse():
    raise PermanentError("no", code="REFUSED")


@job("sleep")
async def sleep(ctx: Context):
    ctx.logger.info("asleep")
    await asyncio.sleep(60)


@job("hang")
async def hang(ctx: Context):
    ctx.logger.info("hangs")
    await asyncio.to_thread(threading.Event().wait)


@job("ignore")
async def ignore(ctx: Context):
    ctx.logger.info("ignores")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass


@job("finish")
async def finish(ctx: Context):
    ctx.logger.info("begins")
    await asyncio.sleep(1)
    ctx.logger.info("finishes")


@job("obey")
async def obey(ctx: Context):
    ctx.logger.info("waits")
    try:
        await asyncio.sleep(60)
    finally:
        ctx.logger.info("was told: %s", ctx.cancelled.reason)


@job("deaf")
def deaf(ctx: Context):
    ctx.logger.info("is deaf")
    threading.Event().wait()


@job("deaf_process", isolation="process")
def deaf_process(ctx: SyncContext):
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    ctx.progress("deaf")
    while True:
        signal.pause()


@job("leak")
async def leak(ctx: Context):
    ctx.logger.info("knows postgresql://me:hunter2@db/shop", extra={"token": "x"})
    raise RuntimeError("password=hunter2\\nand more")
'''


class Process:
    """`until` reads its log up to a line; `log` is all of it so far."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.log: list[str] = []

    def until(self, pattern: str) -> "re.Match[str]":
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.log.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"it ended without a line like {pattern!r}:\n{''.join(self.log)}")

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self, number: int = SIGTERM) -> Done:
        self.send(number)
        return self.wait()

    def wait(self) -> Done:
        out, err = self._process.communicate(timeout=30)
        self.log += err.splitlines(keepends=True)
        return Done(self._process.returncode, out, "".join(self.log))


@contextmanager
def worker(folder: Path, dsn: str, *arguments: object, **variables: str) -> Iterator[Process]:
    (folder / "shop.py").write_text(JOBS)
    with subprocess.Popen(
        [*COMMAND, "worker", *map(str, arguments)],
        cwd=folder,
        env=environment(dsn, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Process(process)
        finally:
            process.kill()


def drained(folder: Path, dsn: str, *arguments: object, **variables: str) -> Done:
    with worker(folder, dsn, *arguments, "--drain", **variables) as process:
        return process.wait()


def put(dsn: str, job_type: str, payload: dict[str, Any] | None = None, **options: Any) -> str:
    return str(on(dsn, lambda conn: enqueue(conn, job_type, payload or {}, **options)).id)


def state(dsn: str, job_id: str) -> Any:
    return on(dsn, lambda conn: conn.fetchrow("select state, attempt from ostinato.all_jobs where id = $1", job_id))


def get(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def until(look: Callable[[], T | None], seconds: float = 20) -> T:
    """What it sees, once it sees something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := look()) is not None:
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing within {seconds:g} s")


def answer(port: int, sent: bytes) -> bytes:
    """All that is said to these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(sent)
        parts = []
        with suppress(ConnectionResetError):
            while part := connection.recv(65_536):
                parts.append(part)
    return b"".join(parts)

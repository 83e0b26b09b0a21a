"""Runs the real `ostinato` as a process of its own, as a person would."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import asyncpg

COMMAND = [sys.executable, "-m", "ostinato_cli.main"]


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(dsn: str | None = None, **variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OSTINATO_", "PG"))}
    return kept | variables | ({"OSTINATO_DSN": dsn} if dsn else {})


def ostinato(*arguments: object, dsn: str | None = None, stdin: str = "", **variables: str) -> Done:
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env=environment(dsn, **variables),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def enqueued(dsn: str, *arguments: object, job_type: str = "send_email") -> str:
    done = ostinato("enqueue", job_type, *arguments, "-o", "json", dsn=dsn)
    assert done.code == 0, done.err
    return str(done.json["id"])


def on(dsn: str, act: Callable[[Any], Awaitable[Any]]) -> Any:
    """Do one thing on a connection of its own, from a test that is not async."""

    async def run() -> Any:
        conn = await asyncpg.connect(dsn)
        try:
            return await act(conn)
        finally:
            await conn.close()

    return asyncio.run(run())

"""Handlers of the workers that the tests start as processes of their own. They tell the database what they did."""

import asyncio
import ctypes
import time
from typing import Any

from ostinato import Context, job

SHOP = "create table shop (job uuid not null, n int, worker text, at timestamptz not null default clock_timestamp())"
TELL = "insert into shop (job, n, worker) values ($1, $2, current_setting('application_name'))"


@job("note")
async def note(payload: dict[str, Any], ctx: Context) -> None: ...


@job("sell", transaction=True, max_attempts=20, backoff="200ms")
async def sell(payload: dict[str, Any], ctx: Context) -> None:
    await ctx.tx.execute(TELL, ctx.job_id, payload["n"])
    if "blocks" in payload:
        time.sleep(payload["blocks"])  # noqa: ASYNC251
    else:
        await asyncio.sleep(payload["seconds"])


@job("wait", max_attempts=20, backoff="200ms")
async def wait(payload: dict[str, Any], ctx: Context) -> None:
    await asyncio.sleep(payload["seconds"])


@job("block")
async def block(payload: dict[str, Any], ctx: Context) -> None:
    time.sleep(payload["seconds"])  # noqa: ASYNC251


@job("hold", max_attempts=20, backoff="200ms")
async def hold(payload: dict[str, Any], ctx: Context) -> None:
    """Keeps the interpreter to itself, as a C library may: no thread of its process moves. The next one is well."""
    if ctx.attempt == 1:
        ctypes.PyDLL(None).sleep(payload["seconds"])


def limited(name: str) -> Any:
    @job(name, transaction=True, max_running=3, max_attempts=20, backoff="200ms")
    async def work(payload: dict[str, Any], ctx: Context) -> None:
        """Writes down how many of its type run at this instant, itself included, as the database sees it."""
        running = "select count(*) from ostinato.jobs where job_type = $1 and state = 'running'"
        await ctx.tx.execute(f"insert into seen select $1, ({running})", name)
        await asyncio.sleep(payload.get("seconds", 0.002))

    return work


one, two, three, four, five = (limited(f"limited{n}") for n in range(1, 6))

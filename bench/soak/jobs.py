"""What the soaked worker runs: mostly nothing, and a little of all that could leak."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ostinato import Context, TransientError, job

SECONDS = 1.0


@job("noop")
async def noop() -> None: ...


@job("flaky", backoff=0)
async def flaky(ctx: Context) -> None:
    """Fails once."""
    if ctx.attempt == 1:
        raise TransientError("boom")


@job("waits", timeout="1m")
async def waits(ctx: Context) -> None:
    """Keeps a task of its own, and says how far it is."""
    await asyncio.sleep(0.001)
    await ctx.progress(1)


@job("sells", transaction=True)
async def sells(ctx: Context) -> None:
    await ctx.tx.execute("insert into soaked default values")


@job("threaded")
def threaded() -> None: ...


@job("isolated", isolation="process")
def isolated() -> None: ...


@asynccontextmanager
async def watched() -> AsyncIterator[None]:
    """Says on standard output how many tasks there are: what nobody sees from outside."""
    watching = asyncio.create_task(_say())
    try:
        yield
    finally:
        watching.cancel()


async def _say() -> None:
    while True:
        print(len(asyncio.all_tasks()), flush=True)
        await asyncio.sleep(SECONDS)

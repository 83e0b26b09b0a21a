"""Keeps a loop going: the only place that catches whatever a loop of ours may raise."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

LOG: Final = logging.getLogger("ostinato.worker")
SHORTEST, LONGEST = 0.1, 5.0
CHANCE: Final = Random()


async def supervise(name: str, work: Callable[[], Awaitable[None]], failed: Callable[[str], None]) -> None:
    """Do it again after a failure, later each time; returns when `work` does. What worked for long is forgiven."""
    wait = SHORTEST
    while True:
        began = asyncio.get_running_loop().time()
        try:
            return await work()
        except Exception as error:
            # Cancelled, but what was cleaned up on the way out failed: then the failure took the cancellation's place.
            if (me := asyncio.current_task()) and me.cancelling():
                raise asyncio.CancelledError from error
            if asyncio.get_running_loop().time() - began > LONGEST:
                wait = SHORTEST
            failed(name)
            LOG.warning("%s failed and goes on in %.1f s: %s: %s", name, wait, type(error).__name__, error)
            LOG.debug("%s", name, exc_info=error)
        await asyncio.sleep(wait * CHANCE.uniform(0.8, 1.2))
        wait = min(wait * 2, LONGEST)

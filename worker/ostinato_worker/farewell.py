"""How a worker ends: within its grace, whatever its handlers do and whether the database answers or not.

0                    grace - notice            grace - goodbye          grace
│ running jobs go on │ they are told to stop   │ they are given up      │ written down, and gone
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from ostinato_worker.attempt import SHUTDOWN
from ostinato_worker.claimer import Claimer
from ostinato_worker.crew import Crew
from ostinato_worker.options import Options

SHORTEST_GOODBYE: Final = 2.0  # seconds for a slow database, when the grace is over already


class Farewell:
    def __init__(self, options: Options) -> None:
        self._grace = options.grace.total_seconds()
        self._notice = options.notice.total_seconds()
        self._goodbye = options.goodbye.total_seconds()
        self._said = asyncio.Event()
        self._ends_at = 0.0

    @property
    def longest(self) -> float:
        """How many seconds running jobs may go on for."""
        return self._grace - self._notice

    def forget(self) -> None:
        """The worker begins, perhaps anew."""
        self._said.clear()

    async def said(self) -> float:
        """Until it is, or is spared, since last asked; what is left of the grace then, in seconds."""
        await self._said.wait()
        self._said.clear()
        return self._ends_at - asyncio.get_running_loop().time()

    def spare(self, *, at_once: bool) -> None:
        """Nothing ran, so there is nothing to say: what is left is to close."""
        self._ends_at = asyncio.get_running_loop().time() + (0 if at_once else self._grace)
        self._said.set()

    async def say(self, claimer: Claimer, crew: Crew, sign_off: Callable[[], Awaitable[None]]) -> None:
        """Stop claiming, give back what has not begun, wait for the rest, give that back too, and sign off."""
        now = asyncio.get_running_loop().time
        self._ends_at = ends_at = now() + self._grace
        told_at = ends_at - self._notice
        claimer.paused = True
        crew.give_back()
        await _until(max(told_at, now() + SHORTEST_GOODBYE), claimer.settled())
        await _until(told_at, crew.idle())
        crew.stop_all(SHUTDOWN)
        await _until(ends_at - self._goodbye, crew.idle())
        crew.give_up_all(SHUTDOWN)
        await _until(max(ends_at, now() + SHORTEST_GOODBYE), sign_off())
        self._said.set()


async def _until(when: float, work: Awaitable[Any]) -> None:
    """Or until it is done, which it may be at once, also if it is late."""
    with suppress(TimeoutError):
        async with asyncio.timeout_at(when):
            await work

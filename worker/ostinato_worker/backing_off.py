"""How long to leave a server alone that had nothing for us: longer each time, until it has something again."""

import asyncio
from random import Random
from typing import Final

SHORTEST, LONGEST = 0.2, 5.0
CHANCE: Final = Random()


class BackOff:
    """One for all who ask the same server: those who wait side by side have failed once, and not once each."""

    def __init__(self) -> None:
        self._seconds = SHORTEST

    async def wait(self) -> None:
        seconds = self._seconds
        await asyncio.sleep(seconds * CHANCE.uniform(0.8, 1.2))
        self._seconds = min(LONGEST, max(self._seconds, seconds * 2))

    def forget(self) -> None:
        self._seconds = SHORTEST

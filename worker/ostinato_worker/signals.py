"""What SIGTERM and SIGINT do while a worker runs."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress


class Signals:
    """SIGTERM and SIGINT call `act` as long as this lasts; not in a thread, where nobody may say so."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(ValueError, RuntimeError, NotImplementedError):
                self._loop.add_signal_handler(number, self._act)

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(ValueError, RuntimeError, NotImplementedError):
                self._loop.remove_signal_handler(number)

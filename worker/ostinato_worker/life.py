"""How a worker begins and ends: once at a time, in the task of its caller, and called off if it is told to stop while
it begins."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Final, Self

from ostinato_worker.farewell import Farewell
from ostinato_worker.signals import Signals

LOG: Final = logging.getLogger("ostinato.worker")


class Life(ABC):
    """`async with` runs it beside other things; `run()` is that, until it is stopped or told to end."""

    def __init__(self, farewell: Farewell) -> None:
        self._farewell = farewell
        self._stopping: asyncio.Event | None = None
        self._starting: asyncio.Timeout | None = None
        self._stack: AsyncExitStack | None = None

    @abstractmethod
    async def _start(self, stack: AsyncExitStack) -> None:
        """What is to be closed again goes to the stack."""

    @abstractmethod
    async def _end(self) -> None: ...

    @abstractmethod
    def _hurry(self) -> None:
        """It was told to stop a second time."""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.enter_context(self._in_use())
            self._farewell.forget()
            await self._start(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._stack is not None
        try:
            self._stopped.set()
            await self._end()
        finally:
            await self._stack.aclose()

    async def run(self) -> None:
        """Until SIGTERM, SIGINT or `stop()`; a second signal ends at once what is still running."""
        self._check_unused()
        with Signals(self.stop):
            await self._live(lambda: self._stopped.wait())

    def stop(self) -> None:
        """Claim nothing more, let what runs finish within the grace, give back the rest. Twice: at once."""
        if self._stopping is None:
            return  # it has ended, or not begun
        again = self._stopping.is_set()
        self._stopping.set()
        if again:
            LOG.warning("stops at once")
        if self._starting is not None:
            self._call_off(self._starting, again)
        elif not again:
            LOG.info("stops: lets running jobs finish, for %g s at most", self._farewell.longest)
        else:
            self._hurry()

    async def parted(self) -> float:
        """Until there is only closing to do; how many seconds are left for it. Asked again: until there are fewer."""
        return await self._farewell.said()

    @property
    def _stopped(self) -> asyncio.Event:
        if self._stopping is None:
            raise RuntimeError("the worker is not running: use `async with worker:` or `await worker.run()`")
        return self._stopping

    def _check_unused(self) -> None:
        if self._stopping is not None:
            raise RuntimeError("this worker runs already: make another one")

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        self._check_unused()
        self._stopping = asyncio.Event()
        try:
            yield
        finally:
            self._stack = self._stopping = None

    async def _live(self, work: Callable[[], Awaitable[object]]) -> bool:
        """Begin, work and end. False: it was stopped before it had begun."""
        if not await self._begun():
            return False
        try:
            await work()
        finally:
            await self.__aexit__()
        return True

    async def _begun(self) -> bool:
        """In the task of the caller: what the application opens may have to be closed in the task that opened it."""
        starting = self._starting = asyncio.timeout(None)
        try:
            async with starting:
                await self.__aenter__()
        except TimeoutError:
            if not starting.expired():
                raise
            return False
        finally:
            self._starting = None
        return True

    def _call_off(self, starting: asyncio.Timeout, again: bool) -> None:
        self._farewell.spare(at_once=again)
        if not again:
            LOG.info("stops: it has not begun yet, and closes what it has opened")
            starting.reschedule(asyncio.get_running_loop().time())

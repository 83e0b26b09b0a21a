"""What a worker holds for its isolated jobs: a server that forks, started again when it has died."""

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, TypeVar

from ostinato.context import Cancelled, Context
from ostinato.failures import Code, TransientError
from ostinato.handler import Handler, Isolation
from ostinato.store.job import Claimed
from ostinato_worker.isolation.attempt import Attempt
from ostinato_worker.isolation.forkserver import Forkserver
from ostinato_worker.isolation.outcomes import CannotStart, Stopped

Result = TypeVar("Result")


class Isolator:
    """`modules` hold the handlers; `grace` is each step of the ladder; `keep_env` names further variables to keep."""

    def __init__(self, modules: Sequence[str], *, grace: float = 10.0, keep_env: Collection[str] = ()) -> None:
        self._modules = modules
        self._grace = grace
        self._keep_env = keep_env
        self._server: Forkserver | None = None
        self._starting = asyncio.Lock()
        self._closed = False

    async def start(self) -> None:
        """Raises CannotStart, which names the module that cannot be imported."""
        await self._running()

    async def close(self) -> None:
        """End the server and whatever still runs; attempts that are left fail, and so does what comes later."""
        self._closed = True
        async with self._starting:
            if self._server is not None:
                await self._server.close(self._grace)
                self._server = None

    @property
    def pid(self) -> int | None:
        """The server's, if there is one."""
        return None if self._server is None else self._server.pid

    async def perform(self, handler: Handler, job: Claimed, ctx: Context) -> Any:
        """The handler's output; raises what the handler raised, or says how its process ended."""
        isolation = handler.isolation or Isolation()
        try:
            server = await _unless(ctx.cancelled, self._running())
        except CannotStart as error:
            raise TransientError(str(error), code=Code.PROCESS_DIED) from None
        return await Attempt(server.fork(handler, isolation), isolation, ctx, self._grace).run(job)

    async def _running(self) -> Forkserver:
        async with self._starting:
            if self._server is not None and self._server.lost:
                await self._server.close(self._grace)
                self._server = None
            if self._closed:
                raise CannotStart("the worker has closed its server for isolated jobs")
            if self._server is None:
                self._server = await Forkserver.start(self._modules, self._keep_env)
            return self._server


async def _unless(cancelled: Cancelled, work: Coroutine[Any, Any, Result]) -> Result:
    """A module may take forever to import: that must not be a way to escape from being stopped."""
    working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(cancelled.wait())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise Stopped(cancelled.reason or "", "before it had a process")
    finally:
        for task in (working, waiting):
            task.cancel()
        await asyncio.wait((working, waiting))

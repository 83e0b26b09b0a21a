"""A synchronous handler's attempt in a thread of its own.

Daemon threads, not an executor's: a handler that hangs for good must not keep the process from ending.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            answer, error = context.run(function, *arguments), None
        except BaseException as raised:
            answer, error = None, raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, done, answer, error)

    threading.Thread(target=run, name="ostinato-handler", daemon=True).start()
    answer, error = await done
    if error is not None:
        raise error
    return answer


def wait_from_thread(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
    """What a synchronous handler asks of its worker: done in the worker's event loop, waited for in the thread."""
    if _runs_here(loop):
        work.close()
        raise RuntimeError("this waits for the worker's event loop, in which it runs itself: await it instead")
    return asyncio.run_coroutine_threadsafe(work, loop).result()


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _settle(done: "asyncio.Future[Any]", answer: Any, error: BaseException | None) -> None:
    # As a pair, never as the future's exception: a future takes no StopIteration, and complains of what nobody reads.
    if not done.done():
        done.set_result((answer, error))

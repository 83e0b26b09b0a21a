"""Calls a handler's hooks around its attempt. Whatever they raise is logged and changes nothing."""

import asyncio
import inspect
import logging
from typing import Any, Final

from ostinato_worker.attempt import Attempt
from ostinato_worker.judge import said
from ostinato_worker.threads import in_thread
from ostinato_worker.verdict import Committed, Completed, Failed, Verdict

LOG: Final = logging.getLogger("ostinato.worker")


async def before(attempt: Attempt) -> None:
    await _call(attempt, "on_start")


async def after(attempt: Attempt, verdict: Verdict, patience: float) -> None:
    """The verdict stands by now: a hook that hangs is cut off, and so is one whose attempt is told to stop."""
    try:
        async with asyncio.timeout(patience):
            if isinstance(verdict, Completed | Committed):
                await _call(attempt, "on_success", attempt.output)
            elif isinstance(verdict, Failed):
                await _call(attempt, "on_fail", verdict)
            await _call(attempt, "on_end")
    except GeneratorExit:
        raise
    except BaseException as error:
        LOG.warning("a hook of %s was cut off: %s", attempt.job.job_type, said(error))


async def _call(attempt: Attempt, name: str, *about: Any) -> None:
    hook = attempt.bound.hooks.get(name) if attempt.bound else None
    if hook is None:
        return
    try:
        if inspect.iscoroutinefunction(hook):
            await hook(attempt.ctx, *about)
        else:
            # In a thread, as a synchronous handler: it may wait for the worker, whose event loop it must not block.
            waiting = await in_thread(hook, attempt.ctx.in_thread(), *about)
            if inspect.isawaitable(waiting):
                await waiting
    except BaseException as error:
        if isinstance(error, GeneratorExit) or (isinstance(error, asyncio.CancelledError) and _is_told_to_stop()):
            raise
        LOG.warning("%s of %s failed: %s", name, attempt.job.job_type, said(error), exc_info=error)


def _is_told_to_stop() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0

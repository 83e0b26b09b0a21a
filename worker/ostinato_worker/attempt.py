"""One try of one job: what is known of it while it runs."""

import asyncio
from datetime import timedelta
from time import perf_counter
from typing import Any, Final

from ostinato.context import Context, Line, SyncContext
from ostinato.handler import Bound, Handler
from ostinato.store import Claimed
from ostinato_worker.options import Options
from ostinato_worker.verdict import Verdict

# Why an attempt was told to stop.
CANCELLED: Final = "cancelled"
TIMEOUT: Final = "timeout"
SHUTDOWN: Final = "shutdown"
LOST: Final = "lost"


class Attempt:
    """`task` is set once it waits for something; `begun`, `returned` and `verdict` when that is so; `late` says that
    its verdict was given without it."""

    __slots__ = (
        "began",
        "begun",
        "bound",
        "ctx",
        "handler",
        "job",
        "late",
        "max_attempts",
        "output",
        "returned",
        "task",
        "timeout",
        "timers",
        "verdict",
    )

    def __init__(self, job: Claimed, handler: Handler | None, line: Line, options: Options) -> None:
        self.job = job
        self.handler = handler
        self.began = perf_counter()
        self.bound: Bound | None = None
        self.timeout: timedelta | None = job.timeout or (handler.timeout if handler else None) or options.timeout
        self.max_attempts = job.max_attempts or (handler.max_attempts if handler else None) or options.max_attempts
        # An isolated handler's own context is in its process: this one answers for it, in the event loop.
        in_thread = handler is not None and not handler.is_async and not handler.isolation
        kind = SyncContext if in_thread else Context
        self.ctx = kind(job, line, self.max_attempts)
        self.task: asyncio.Task[Any] | None = None
        self.timers: list[asyncio.TimerHandle] = []
        self.begun = False  # its handler was called
        self.returned = False
        self.output: Any = None
        self.verdict: Verdict | None = None
        self.late = False

    @property
    def overdue(self) -> bool:
        """Whether it is too late to return: others may be at it by now."""
        return self.ctx.cancelled.reason in (TIMEOUT, LOST)

    @property
    def stoppable(self) -> bool:
        """Once the handler has returned or failed, what follows is short, and not to be cut off."""
        return not (self.ctx.cancelled.is_set() or self.returned or self.verdict)

    def returns(self, output: Any) -> None:
        self.returned = True
        self.output = output

    def stop(self, reason: str) -> None:
        """Ask it to end. A coroutine is cancelled; a thread or process sees it in `ctx.cancelled`."""
        self.ctx.cancelled.set(reason)
        handler = self.handler
        if self.task and handler and not (self.begun and (handler.isolation or not handler.is_async)):
            self.task.cancel()

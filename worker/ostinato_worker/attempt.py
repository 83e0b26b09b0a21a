"""One try of one job: resolve → validate → start its time → perform → normalise. The recorder has the last word."""

import asyncio
import inspect
import logging
import traceback
from collections.abc import Awaitable, Callable
from datetime import timedelta
from time import perf_counter
from typing import Any, Final

from ostinato.context import Context, Line, SyncContext
from ostinato.errors import InvalidArgument
from ostinato.failures import Code, JobError, PermanentError, Snooze, TransientError
from ostinato.handler import Bound, Handler
from ostinato.payload import encode_value
from ostinato.store import Claimed
from ostinato_worker.isolation import Isolator
from ostinato_worker.options import Options
from ostinato_worker.registry import Registry
from ostinato_worker.threads import in_thread
from ostinato_worker.transactions import LeaseLost, NotBegun, Transactions
from ostinato_worker.verdict import DONE, Committed, Completed, Failed, Lost, Released, Snoozed, Stopped, Verdict

LOG: Final = logging.getLogger("ostinato.worker")

# Why an attempt was told to stop.
CANCELLED: Final = "cancelled"
TIMEOUT: Final = "timeout"
SHUTDOWN: Final = "shutdown"
LOST: Final = "lost"

Perform = Callable[["Attempt", Any], Awaitable[Any]]


class Attempt:
    """`task` is set once it waits for something; `late` once its verdict was given without it."""

    __slots__ = (
        "began",
        "bound",
        "ctx",
        "handler",
        "job",
        "late",
        "max_attempts",
        "returned",
        "task",
        "timeout",
        "timers",
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
        self.returned = False
        self.late = False

    @property
    def overdue(self) -> bool:
        """Whether it is too late to return: others may be at it by now."""
        return self.ctx.cancelled.reason in (TIMEOUT, LOST)

    def stop(self, reason: str) -> None:
        """Ask it to end. A coroutine is cancelled; a thread or process sees it in `ctx.cancelled`."""
        if self.ctx.cancelled.is_set() or self.returned:
            return
        self.ctx.cancelled.set(reason)
        handler = self.handler
        if self.task and handler and handler.is_async and not handler.isolation:
            self.task.cancel()


class Pipeline:
    def __init__(
        self,
        registry: Registry,
        line: Line,
        transactions: Transactions,
        isolator: Isolator | None,
        options: Options,
    ) -> None:
        self._registry = registry
        self._isolator = isolator
        self._line = line
        self._transactions = transactions
        self._options = options

    def resolve(self, job: Claimed) -> Attempt:
        return Attempt(job, self._registry.find(job.job_type, job.job_version), self._line, self._options)

    async def run(self, attempt: Attempt) -> Verdict:
        handler = attempt.handler
        if handler is None:  # it was unregistered between claim and start
            return Released()
        try:
            payload = handler.read(attempt.job.payload)
        except ValueError as error:
            return Failed(Code.PAYLOAD_INVALID, _first_lines(error), permanent=True)
        try:
            attempt.bound = handler.bind()
            if attempt.bound.hooks:
                await self._hook(attempt, "on_start")
            verdict = self._normalise(attempt, await self._perform(attempt, handler, payload))
        except GeneratorExit:
            raise
        except BaseException as error:
            verdict = self.verdict_of(attempt, error)
        if attempt.bound and attempt.bound.hooks:
            await self._after(attempt, verdict)
        return verdict

    async def _perform(self, attempt: Attempt, handler: Handler, payload: Any) -> Any:
        assert attempt.bound is not None
        if handler.isolation and self._isolator:
            return await self._isolator.perform(handler, attempt.job, attempt.ctx)
        if handler.transaction:
            return await self._transactions.perform(attempt, payload)
        if handler.is_async:
            output = await attempt.bound.call(payload, attempt.ctx)
        else:
            output = await in_thread(attempt.bound.call, payload, attempt.ctx)
        attempt.returned = True
        return output

    def _normalise(self, attempt: Attempt, output: Any) -> Verdict:
        reason = attempt.ctx.cancelled.reason
        if reason == TIMEOUT:
            return self._timed_out(attempt)
        if reason == LOST:
            return Lost()
        if isinstance(output, Committed):
            return output
        if output is None:
            return DONE
        try:
            encode_value("output", output)
        except InvalidArgument as error:
            return Failed(Code.OUTPUT_INVALID, str(error), permanent=True)
        return Completed(output)

    def verdict_of(self, attempt: Attempt, error: BaseException) -> Verdict:
        """What an attempt that did not return comes to."""
        reason = attempt.ctx.cancelled.reason
        if reason == TIMEOUT:
            return self._timed_out(attempt)
        if reason == LOST or isinstance(error, LeaseLost):
            return Lost()
        if reason == SHUTDOWN:
            return Released()
        if reason == CANCELLED:
            return Stopped(None if isinstance(error, asyncio.CancelledError) else _said(error))
        if isinstance(error, NotBegun):
            return Released()
        if isinstance(error, Snooze):
            return Snoozed(error.delay, error.until)
        return self._settled(attempt, _failure(error))

    def _timed_out(self, attempt: Attempt) -> Failed:
        took = f"it took longer than {attempt.timeout.total_seconds():g} s" if attempt.timeout else "it took too long"
        return self._settled(attempt, Failed(Code.TIMEOUT, took))

    def _settled(self, attempt: Attempt, failed: Failed) -> Failed:
        """With the last attempt spent it is over; else it waits for its backoff."""
        assert attempt.handler is not None
        spent = failed.permanent or attempt.job.attempt >= attempt.max_attempts
        delay = failed.delay if failed.delay is not None else attempt.handler.backoff.delay(attempt.job.attempt)
        return Failed(failed.code, failed.message, delay, permanent=spent)

    async def _after(self, attempt: Attempt, verdict: Verdict) -> None:
        if isinstance(verdict, Completed | Committed):
            output = verdict.output if isinstance(verdict, Completed) else None
            await self._hook(attempt, "on_success", output)
        elif isinstance(verdict, Failed):
            await self._hook(attempt, "on_fail", verdict)
        await self._hook(attempt, "on_end")

    async def _hook(self, attempt: Attempt, name: str, *about: Any) -> None:
        hook = attempt.bound.hooks.get(name) if attempt.bound else None
        if hook is None:
            return
        try:
            waiting = hook(attempt.ctx, *about)
            if inspect.isawaitable(waiting):
                await waiting
        except Exception as error:
            LOG.warning("%s of %s failed: %s", name, attempt.job.job_type, _said(error), exc_info=error)


def _failure(error: BaseException) -> Failed:
    if isinstance(error, JobError):
        delay = error.retry_after if isinstance(error, TransientError) else None
        return Failed(error.code, str(error) or type(error).__name__, delay, isinstance(error, PermanentError))
    trace = "".join(traceback.format_exception(error)[1:])
    return Failed(Code.HANDLER_ERROR, f"{_said(error)}\n{trace[-2_000:]}")


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _first_lines(error: ValueError) -> str:
    return str(error)[:1_000]

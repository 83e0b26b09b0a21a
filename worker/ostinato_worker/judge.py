"""What an attempt that raised comes to. No I/O, and it never raises: errors are other people's classes."""

import asyncio
import logging
import traceback
from datetime import timedelta
from typing import Final

from ostinato.backoff import DEFAULT
from ostinato.durations import parse_duration
from ostinato.failures import Code, JobError, PermanentError, Snooze, TransientError, parse_wait
from ostinato_worker.attempt import CANCELLED, LOST, SHUTDOWN, TIMEOUT, Attempt
from ostinato_worker.sessions import NotBegun
from ostinato_worker.transactions import LeaseLost
from ostinato_worker.verdict import Failed, Lost, Released, Snoozed, Stopped, Verdict

LOG: Final = logging.getLogger("ostinato.worker")
MOST_TRACE: Final = 2_000


def judge(attempt: Attempt, error: BaseException) -> Verdict:
    try:
        return _judge(attempt, error)
    except BaseException:  # a class of theirs that lacks what its base class has, or cannot be printed
        return settled(attempt, Failed(Code.HANDLER_ERROR, said(error), permanent=isinstance(error, PermanentError)))


def _judge(attempt: Attempt, error: BaseException) -> Verdict:
    """Why it was told to stop comes before what it raised then."""
    if isinstance(error, NotBegun) and attempt.ctx.cancelled.reason in (None, TIMEOUT):
        return Released()  # what was up was the time for a connection, not the handler's
    match attempt.ctx.cancelled.reason:
        case str(reason) if reason == TIMEOUT:
            return timed_out(attempt)
        case str(reason) if reason == LOST:
            return Lost()
        case str(reason) if reason == SHUTDOWN:
            return Released()
        case str(reason) if reason == CANCELLED:
            return Stopped(None if isinstance(error, asyncio.CancelledError) else said(error))
    if isinstance(error, LeaseLost):
        return Lost()
    if isinstance(error, Snooze) and (error.delay is not None or error.until is not None):
        return Snoozed(error.delay, error.until)
    return settled(attempt, _failure(error))


def timed_out(attempt: Attempt) -> Failed:
    took = f"it took longer than {attempt.timeout.total_seconds():g} s" if attempt.timeout else "it took too long"
    return settled(attempt, Failed(Code.TIMEOUT, took))


def settled(attempt: Attempt, failed: Failed) -> Failed:
    """With the last attempt spent it is over; else it waits for its backoff."""
    spent = failed.permanent or attempt.job.attempt >= attempt.max_attempts
    delay = failed.delay if failed.delay is not None else _backoff(attempt)
    return Failed(failed.code, failed.message, delay, permanent=spent)


def said(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    except BaseException:  # its own __str__ raises
        return type(error).__name__


def _backoff(attempt: Attempt) -> timedelta:
    assert attempt.handler is not None
    try:
        return parse_duration("backoff", attempt.handler.backoff.delay(attempt.job.attempt))
    except Exception as error:
        LOG.warning("the backoff of %s failed, so the default's holds: %s", attempt.job.job_type, said(error))
        return DEFAULT.delay(attempt.job.attempt)


def _failure(error: BaseException) -> Failed:
    if isinstance(error, JobError):
        delay = error.retry_after if isinstance(error, TransientError) else None
        delay = None if delay is None else parse_wait("retry_after", delay)
        return Failed(str(error.code), str(error) or type(error).__name__, delay, isinstance(error, PermanentError))
    trace = "".join(traceback.format_exception(error)[1:])
    return Failed(Code.HANDLER_ERROR, f"{said(error)}\n{trace[-MOST_TRACE:]}")

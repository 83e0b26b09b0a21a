"""In the child: one attempt. It never returns: what follows a fork belongs to the server."""

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any, NoReturn

from ostinato.context import Context, SyncContext
from ostinato.failures import Code, PermanentError
from ostinato.handler import Handler
from ostinato_worker.isolation.frames import Frame
from ostinato_worker.isolation.line import ChildLine
from ostinato_worker.isolation.raised import describe
from ostinato_worker.output import encode_output

Limit = Callable[[], None]


def run(handler: Handler, sock: socket.socket, limit: Limit) -> NoReturn:
    """`limit` is called last before the handler, so that what we need ourselves does not count."""
    try:
        if handler.is_async:
            asyncio.new_event_loop().run_until_complete(_run(handler, sock, limit))
        else:
            _run_in_main_thread(handler, sock, limit)
    except SystemExit as error:
        _leave(error.code)
    _leave(0)


async def _run(handler: Handler, sock: socket.socket, limit: Limit) -> None:
    line = await ChildLine.open(sock)
    ctx = Context(line.job, line, line.max_attempts)
    # A task of its own, which can be cancelled.
    attempt = asyncio.create_task(_outcome(handler, ctx, limit))

    def stop(reason: str) -> None:
        ctx.cancelled.set(reason)
        attempt.cancel()

    line.on_stop = stop
    listening = asyncio.create_task(line.listen())
    await line.answer(await attempt)
    del listening  # Held until here: the loop holds tasks only weakly.


async def _outcome(handler: Handler, ctx: Context, limit: Limit) -> Frame:
    process = os.getpid()
    limit()
    try:
        payload = _payload(handler, ctx)
        return _answer(await handler.bind().call(payload, ctx))
    except BaseException as error:  # Whatever a handler raises is an answer.
        return _failure(error, ctx)
    finally:
        _only_in(process)


def _run_in_main_thread(handler: Handler, sock: socket.socket, limit: Limit) -> None:
    """The handler has the main thread, where it may handle signals; the line has one beside."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="line", daemon=True).start()
    line = asyncio.run_coroutine_threadsafe(ChildLine.open(sock), loop).result()
    ctx = SyncContext(line.job, line, line.max_attempts)
    line.on_stop = ctx.cancelled.set
    listening = asyncio.run_coroutine_threadsafe(line.listen(), loop)
    line.wait(line.answer(_outcome_in_main_thread(handler, ctx, limit)))
    del listening


def _outcome_in_main_thread(handler: Handler, ctx: SyncContext, limit: Limit) -> Frame:
    process = os.getpid()
    limit()
    try:
        return _answer(handler.bind().call(_payload(handler, ctx), ctx))
    except BaseException as error:  # Whatever a handler raises is an answer.
        return _failure(error, ctx)
    finally:
        _only_in(process)


def _only_in(process: int) -> None:
    """A handler that forks may return in both: only one of them is the attempt."""
    if os.getpid() != process:
        os._exit(0)


def _payload(handler: Handler, ctx: Context) -> Any:
    try:
        return handler.read(ctx._job.payload)
    except ValueError as error:
        raise PermanentError(str(error), code=Code.PAYLOAD_INVALID) from None


def _answer(output: Any) -> Frame:
    return {"output": encode_output(output)}


def _failure(error: BaseException, ctx: Context) -> Frame:
    if isinstance(error, MemoryError):
        error.__traceback__ = None  # It holds what used the memory up.
        return {"out_of_memory": True}
    if isinstance(error, asyncio.CancelledError) and ctx.cancelled.is_set():
        return {"stopped": True}
    return {"raised": describe(error)}


def _leave(code: Any) -> NoReturn:
    """Without what a program does at its end: hooks and threads that linger are not part of the attempt."""
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)  # noqa: T201  as Python does for sys.exit("text")
        code = 1
    with suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit((code or 0) & 0xFF)

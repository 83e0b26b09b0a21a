"""Handlers that behave, and many that do not, for processes of their own."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from pydantic import BaseModel

from ostinato import Context, InvalidArgument, PermanentError, Snooze, SyncContext, TransientError, job

HELD = open(os.devnull)  # noqa: SIM115  what a module opens when it is imported
CONNECTED, PEER = socket.socketpair()
HOARD: list[bytes] = []
FOREVER = [sys.executable, "-c", "import signal; signal.pause()"]


class Letter(BaseModel):
    to: str
    copies: int = 1


@job("echo", isolation="process")
async def echo(payload: Letter, ctx: Context) -> Any:
    return {"to": payload.to, "copies": payload.copies, "attempt": ctx.attempt, "namespace": ctx.namespace}


@job("echo_sync", isolation="process")
def echo_sync(payload: dict[str, Any]) -> Any:
    return payload


@job("echo_class", version=2, isolation="process")
class EchoClass:
    async def execute(self, payload: dict[str, Any], ctx: Context) -> Any:
        return [payload, ctx.last_progress, ctx.context, ctx.job_version, ctx.max_attempts]


@job("tell_time", isolation="process")
async def tell_time(ctx: Context) -> str:
    return ctx.now().isoformat()


async def hang(ctx: Context) -> None:
    await asyncio.Event().wait()


@job("hangs_at_start", isolation="process", on_start=hang, timeout="200ms")
def hangs_at_start() -> None: ...


@job("odd_output", isolation="process")
async def odd_output() -> Any:
    return object()


@job("raises", isolation="process")
async def raises(payload: dict[str, Any]) -> None:
    raise {
        "transient": TransientError("busy", code="UPSTREAM_5XX", retry_after="90s"),
        "permanent": PermanentError("gone", code="NOT_FOUND"),
        "snooze": Snooze("5m"),
        "other": KeyError("nobody"),
        "surrogate": ValueError("\ud800"),
        "cancelled": asyncio.CancelledError(),
    }[payload["what"]]


class Own(PermanentError):
    """Of a handler's own, which does not care for what it derives from."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class OwnTransient(TransientError):
    code = "OWN"

    def __init__(self, wait: object) -> None:
        self.retry_after = wait  # type: ignore[assignment]


class OwnSnooze(Snooze):
    def __init__(self) -> None: ...


@job("raises_own", isolation="process")
async def raises_own(payload: dict[str, Any]) -> None:
    raise {"permanent": Own("gone"), "transient": OwnTransient(payload.get("wait")), "snooze": OwnSnooze()}[
        payload["what"]
    ]


@job("gives_up", isolation="process")
async def gives_up(payload: dict[str, Any]) -> None:
    raise {"exit": SystemExit("bye"), "interrupt": KeyboardInterrupt()}[payload["how"]]


@job("gives_up_sync", isolation="process")
def gives_up_sync(payload: dict[str, Any]) -> None:
    raise {"exit": SystemExit("bye"), "interrupt": KeyboardInterrupt()}[payload["how"]]


@job("asks", isolation="process")
async def asks(payload: Any, ctx: Context) -> Any:
    await ctx.progress({"done": 1})
    await ctx.emit(["half"])
    made = await ctx.enqueue("other", {"a": 1}, delay="5m", context={"k": "v"})
    return [str(made.id), made.created]


@job("asks_sync", isolation="process")
def asks_sync(payload: Any, ctx: SyncContext) -> Any:
    ctx.progress({"done": 1})
    ctx.emit(["half"])
    made = ctx.enqueue("other", {"a": 1}, delay="5m", context={"k": "v"})
    return [str(made.id), made.created]


@job("asks_in_vain", isolation="process")
async def asks_in_vain(payload: Any, ctx: Context) -> None:
    await ctx.progress(os.getpid())
    await ctx.enqueue("unanswered")


@job("asks_too_much", isolation="process")
async def asks_too_much(payload: Any, ctx: Context) -> str:
    try:
        await ctx.enqueue("refused")
    except InvalidArgument as error:
        return str(error)
    return "nothing was wrong"


@job("dies", isolation="process")
def dies(payload: dict[str, Any]) -> None:
    how = payload["how"]
    if how == "os._exit":
        os._exit(0)
    os.kill(os.getpid(), signal.Signals[how])


@job("hungry", isolation="process", memory="64MiB")
def hungry() -> int:
    return len(bytearray(256 * 2**20))


@job("hungry_async", isolation="process", memory="64MiB")
async def hungry_async() -> None:
    """Leaves not a kilobyte for what comes after it."""
    for size in (2**20, 2**10, *range(512, 0, -16)):
        with suppress(MemoryError):
            while True:
                HOARD.append(bytes(size))
    raise MemoryError


@job("modest", isolation="process", memory="64MiB")
def modest() -> int:
    return len(bytearray(32 * 2**20))


@job("busy", isolation="process", cpu="1s")
def busy(payload: dict[str, Any]) -> None:
    if payload.get("deaf"):
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass


@job("surroundings", isolation="process")
def surroundings() -> Any:
    def leads_to(name: str) -> str:
        try:
            return os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            return "the listing itself"

    return {
        "environment": dict(os.environ),
        "descriptors": {name: leads_to(name) for name in os.listdir("/proc/self/fd")},
        "module's": [str(HELD.fileno()), str(CONNECTED.fileno()), str(PEER.fileno())],
        "session": [os.getpid(), os.getsid(0), os.getpgrp()],
        "main thread": threading.current_thread() is threading.main_thread(),
    }


@job("waits", isolation="process")
async def waits(payload: Any, ctx: Context) -> None:
    try:
        await ctx.progress(os.getpid())
        await asyncio.Event().wait()
    finally:
        await ctx.emit(f"told: {ctx.cancelled.reason}")


@job("waits_sync", isolation="process")
def waits_sync(payload: Any, ctx: SyncContext) -> str:
    ctx.progress(os.getpid())
    ctx.cancelled.wait_in_thread()
    return f"told: {ctx.cancelled.reason}"


@job("deaf", isolation="process")
def deaf(payload: dict[str, Any], ctx: SyncContext) -> None:
    for name in payload.get("ignores", ()):
        signal.signal(signal.Signals[name], signal.SIG_IGN)
    grandchild = subprocess.Popen(FOREVER)
    ctx.progress([os.getpid(), grandchild.pid])
    if payload.get("stops"):
        os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        signal.pause()


@job("leaves_behind", isolation="process")
def leaves_behind(payload: dict[str, Any], ctx: SyncContext) -> int:
    """In its group, in a session of its own, or with the line still open."""
    left = subprocess.Popen(
        FOREVER,
        start_new_session=payload.get("runs_away", False),
        pass_fds=[_line(ctx)] if payload.get("keeps_line") else [],
    )
    ctx.progress([os.getpid(), left.pid])
    ctx.emit("go on")
    return left.pid


@job("forks", isolation="process")
def forks() -> str:
    return "parent" if os.fork() else "child"


@job("forks_async", isolation="process")
async def forks_async() -> str:
    return "parent" if os.fork() else "child"


@job("garbage", isolation="process")
def garbage(payload: dict[str, Any], ctx: SyncContext) -> None:
    os.write(_line(ctx), bytes.fromhex(payload["bytes"]))
    while True:
        signal.pause()


@job("hangs_up", isolation="process")
def hangs_up(payload: dict[str, Any], ctx: SyncContext) -> None:
    if payload["how"] == "close":
        os.close(_line(ctx))
    else:
        socket.socket(fileno=os.dup(_line(ctx))).shutdown(socket.SHUT_WR)
    while True:
        signal.pause()


@job("lingers", isolation="process")
def lingers() -> str:
    """Its process cannot end: the last thing it does takes forever."""

    class Slow:
        def flush(self) -> None:
            signal.pause()

    sys.stdout = Slow()
    threading.Thread(target=time.sleep, args=(3600,)).start()
    return "done"


def _line(ctx: Context) -> int:
    number: int = ctx._line._writer.get_extra_info("socket").fileno()  # type: ignore[attr-defined]
    return number


CALLED: list[Any] = []
MADE: list[int] = []


def noting(name: str) -> Any:
    """A hook that says what it was told, and where it ran."""

    async def hook(ctx: Context, *about: Any) -> None:
        CALLED.append((name, os.getpid(), ctx.state, *about))

    return hook


@job("hooked", isolation="process", on_start=noting("start"), on_success=noting("success"), on_end=noting("end"))
class Hooked:
    def __init__(self) -> None:
        MADE.append(os.getpid())

    async def execute(self) -> Any:
        return [MADE, CALLED]


@job("deep_breath", isolation="process")
async def deep_breath() -> str:
    return "alive"

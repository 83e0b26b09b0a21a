"""How an attempt in a process can end without an answer, and the words for it."""

import signal
from datetime import timedelta
from typing import NamedTuple

from ostinato.durations import format_duration
from ostinato.errors import OstinatoError
from ostinato.failures import Code, TransientError
from ostinato.handler import Isolation


class CannotStart(OstinatoError):
    """The server that forks processes cannot be started: names the module that fails."""


class Stopped(Exception):
    """The worker had set `ctx.cancelled`, and the process ended without an answer."""

    def __init__(self, reason: str, how: str = "") -> None:
        super().__init__(f"{reason}: {how}" if how else reason)
        self.reason = reason


class Exit(NamedTuple):
    """A process has ended. `code` is negative for a signal; None if nobody saw it end."""

    code: int | None
    cpu: float = 0.0  # seconds
    oom_killed: bool = False
    reason: str = ""  # where there is no code

    @property
    def how(self) -> str:
        if self.code is None:
            return self.reason
        if self.code < 0:
            return f"killed by signal {-self.code} ({_name(-self.code)})"
        return f"exited with code {self.code} without an answer"


def died(exit_: Exit, isolation: Isolation) -> TransientError:
    if exit_.oom_killed:
        return TransientError("the kernel killed it for want of memory", code=Code.OUT_OF_MEMORY)
    if isolation.cpu is not None and _used_up(exit_, isolation.cpu):
        text = f"used more than its CPU time of {format_duration(isolation.cpu)}, {exit_.how}"
        return TransientError(text, code=Code.TIMEOUT)
    return TransientError(exit_.how, code=Code.PROCESS_DIED)


def out_of_memory(isolation: Isolation) -> TransientError:
    limit = "there is" if isolation.memory is None else f"its limit of {isolation.memory:,} bytes"
    return TransientError(f"MemoryError: needed more memory than {limit}", code=Code.OUT_OF_MEMORY)


def _used_up(exit_: Exit, limit: timedelta) -> bool:
    # Who catches SIGXCPU is killed a second later by SIGKILL, which could be anybody's but for the time used.
    return exit_.code == -signal.SIGXCPU or (exit_.code == -signal.SIGKILL and exit_.cpu > limit.total_seconds())


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "real-time"

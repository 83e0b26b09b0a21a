"""What Python has no words for: prctl, and who one's children are."""

import ctypes
import os
import signal
from pathlib import Path
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
_libc: Final = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """Be killed when the parent ends, and at once if it has."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The race: it ended before we said so.
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def outlive_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, 0)


def adopt_orphans() -> None:
    """Grandchildren whose parent ends become our children, not those of process 1, which may be a worker."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def children() -> set[int]:
    """Ours, if we have one thread. A kernel without this file keeps it to itself."""
    try:
        return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}
    except FileNotFoundError:
        return set()


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

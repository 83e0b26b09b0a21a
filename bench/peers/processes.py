"""CPU seconds that processes used, from /proc."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

PROC = Path("/proc")
PER_SECOND = os.sysconf("SC_CLK_TCK")
# Places in /proc/<pid>/stat after the name in parentheses, which may hold anything.
PARENT, OWN_AND_REAPED = 1, slice(11, 15)
# In /proc/stat: user, nice, system, steal. What the hypervisor stole was somebody's too.
BUSY = (1, 2, 3, 8)


def machine_cpu() -> float:
    """Of everybody since boot."""
    words = (PROC / "stat").read_text().split("\n", 1)[0].split()
    return sum(int(words[place]) for place in BUSY) / PER_SECOND


def family_cpu(pid: int) -> float:
    """Of a process, its children that ended, and those that live."""
    return sum(_cpu(words) for words in [_stat(pid), *_children(pid)])


def parent(pid: int) -> int:
    return int(_stat(pid)[PARENT])


def _cpu(words: list[str]) -> float:
    return sum(map(int, words[OWN_AND_REAPED])) / PER_SECOND


def _children(pid: int) -> list[list[str]]:
    found = []
    for folder in PROC.glob("[0-9]*"):
        # Processes come and go while one looks at them.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (words := _stat(int(folder.name)))[PARENT] == str(pid):
                found.append(words)
    return found


def _stat(pid: int) -> list[str]:
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()

"""The worker that is soaked: `ostinato worker`, a process of its own, looked at from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMAND = ("--jobs", "bench.soak.jobs", "--state", "bench.soak.jobs:watched", "--concurrency", "50")
ROOT = Path(__file__).parents[2]
PAGE_KIB = os.sysconf("SC_PAGESIZE") // 1024


@dataclass(frozen=True)
class Sample:
    """`processes`: its fork server and whatever else descends from it, zombies too."""

    seconds: float
    done: int
    memory_kib: int
    descriptors: int
    threads: int
    tasks: int
    connections: int
    processes: int


class Worker:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.tasks = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.tasks = int(line)

    def memory_kib(self) -> int:
        return int((self._proc / "statm").read_text().split()[1]) * PAGE_KIB

    def descriptors(self) -> int:
        return len(os.listdir(self._proc / "fd"))

    def threads(self) -> int:
        return len(os.listdir(self._proc / "task"))

    def processes(self) -> int:
        parents = dict(_parents())
        found, last = {self.process.pid}, set[int]()
        while found != last:
            last = found
            found = found | {pid for pid, parent in parents.items() if parent in found}
        return len(found) - 1

    @property
    def _proc(self) -> Path:
        return Path("/proc", str(self.process.pid))


@contextmanager
def running(dsn: str) -> Iterator[Worker]:
    program = Path(sys.executable).parent / "ostinato"
    process = subprocess.Popen(
        [program, "worker", *COMMAND],
        env=os.environ | {"OSTINATO_DSN": dsn, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Worker(process)
    finally:
        process.terminate()
        process.wait(60)


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has ended meanwhile
                continue

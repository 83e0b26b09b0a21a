"""A worker process of a peer; a thread hears what it says."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from bench.peers.adapter import CHECKOUT, SHOWN, Adapter, AdapterFailed
from bench.peers.processes import family_cpu

STOP_SECONDS = 5


class Worker:
    def __init__(self, adapter: Adapter, handler: str, conf: Mapping[str, Any]) -> None:
        self.first_start: float | None = None
        self.count = 0
        self.starts: dict[int, float] = {}  # of latency probes
        self._errors: list[str] = []
        settings = json.dumps({name: value for name, value in conf.items() if name != "default"})
        self._process = subprocess.Popen(
            [*adapter.command, "work", handler, settings],
            cwd=CHECKOUT,
            env=adapter.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._errors_heard = threading.Thread(target=self._collect_errors, daemon=True)
        self._errors_heard.start()
        self._await_ready()
        threading.Thread(target=self._listen, daemon=True).start()

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("GO\n")
        self._process.stdin.flush()

    def cpu(self) -> float:
        return family_cpu(self._process.pid)

    def must_live(self) -> None:
        if self._process.poll() is not None:
            self._errors_heard.join(STOP_SECONDS)
            raise AdapterFailed(f"a worker died: {self.said_wrong()}")

    def said_wrong(self) -> str:
        return "".join(self._errors)[-SHOWN:]

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _await_ready(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "READY":
            self._process.kill()
            self._process.wait()
            self._errors_heard.join(STOP_SECONDS)
            raise AdapterFailed(f"a worker did not start: {self.said_wrong()}")

    def _collect_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(self._process.stderr)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            match line.split():
                case ["F", at]:
                    self.first_start = float(at)
                case ["H", count, _]:
                    self.count = int(count)
                case ["L", i, at]:
                    self.starts[int(i)] = float(at)


@contextmanager
def running(adapter: Adapter, handler: str, conf: Mapping[str, Any], count: int = 1) -> Iterator[list[Worker]]:
    with ExitStack() as stack:
        workers = []
        for _ in range(count):
            workers.append(worker := Worker(adapter, handler, conf))
            stack.callback(worker.stop)
        yield workers

"""Who else used this machine while we measured: the benchmark's lie detector."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from bench.peers.postgres import Postgres
from bench.peers.processes import machine_cpu
from bench.peers.sizes import Sizes
from bench.peers.worker import Worker

Row: TypeAlias = dict[str, Any]
NOISE = 0.2  # cores of others, over which a run is repeated
SLACK = 0.1  # CPU seconds that ticks of 10 ms can misplace in a short run
LOOK_SECONDS = 0.7
WAIT_IN_ALL = 600.0


class Watch:
    """From its making on: the cores that were used by processes that are not ours, and stolen by the hypervisor."""

    def __init__(self, postgres: Postgres, workers: Sequence[Worker] = ()) -> None:
        self._postgres, self._workers = postgres, workers
        self._began, self._others = time.monotonic(), self._used_by_others()

    def foreign_cores(self) -> float:
        spent = self._used_by_others() - self._others
        return round(max(0.0, spent - SLACK) / (time.monotonic() - self._began), 3)

    def _used_by_others(self) -> float:
        ours = sum(os.times()[:4]) + self._postgres.cpu() + sum(worker.cpu() for worker in self._workers)
        return machine_cpu() - ours


@dataclass
class Neighbours:
    """Waits for them, and repeats what they disturbed."""

    sizes: Sizes
    discarded: int = 0
    waited: float = 0.0

    def undisturbed(self, postgres: Postgres, run: Callable[[], Row]) -> Row:
        """The least disturbed of a few tries, which carries its figure."""
        tries: list[Row] = []
        for _ in range(self.sizes.attempts):
            self._await_quiet(postgres)
            tries.append(run())
            if tries[-1]["foreign_cores"] < NOISE:
                break
            self.discarded += 1
            say(f"   noisy: others used {tries[-1]['foreign_cores']} cores")
        return min(tries, key=lambda row: float(row["foreign_cores"]))

    def _await_quiet(self, postgres: Postgres) -> None:
        began = time.monotonic()
        patience = self.sizes.patience if self.waited < WAIT_IN_ALL else 0
        while True:
            watch = Watch(postgres)
            time.sleep(LOOK_SECONDS)
            waited = time.monotonic() - began
            if watch.foreign_cores() < NOISE or waited > patience:
                self.waited += max(0.0, waited - LOOK_SECONDS)
                return


def say(*words: object) -> None:
    print(time.strftime("%H:%M:%S"), *words, file=sys.stderr, flush=True)

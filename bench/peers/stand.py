"""One peer on one server: a queue is filled, workers empty it, and the clock runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.peers.adapter import Adapter, AdapterFailed
from bench.peers.postgres import Connection, Postgres, first_value
from bench.peers.sizes import Sizes
from bench.peers.watch import Neighbours, Row, Watch, say
from bench.peers.worker import Worker, running

Conf = Mapping[str, Any]
POLL_SECONDS = 0.01
CHUNK = 1000
WAL_NOW = "select pg_current_wal_insert_lsn()"
WAL_SINCE = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %(since)s)"
KEPT = ("conf", "rate", "rate_from_go", "foreign_cores")


@dataclass
class Stand:
    adapter: Adapter
    postgres: Postgres
    neighbours: Neighbours
    sizes: Sizes
    tuned: dict[str, tuple[Conf, list[Row]]] = field(default_factory=dict)

    def undisturbed(self, run: Callable[[], Row]) -> Row:
        return self.neighbours.undisturbed(self.postgres, run)

    def make_template(self) -> None:
        self.postgres.make_template(lambda: self.adapter.call("setup"))

    def loaded(self, handler: str, conf: Conf, workers: int, jobs: int, timeout: float) -> Row:
        """One undisturbed run over a freshly loaded queue."""

        def run() -> Row:
            self.postgres.fresh()
            self.adapter.enqueue(jobs, CHUNK, handler)
            return self.drained(handler, conf, workers, jobs, timeout)

        return self.undisturbed(run)

    def tune(self, kind: str, handler: str, jobs: int) -> tuple[Conf, list[Row]]:
        """The best of the adapter's settings of a kind, each tried for some seconds once; and what was tried."""
        confs: list[Conf] = self.adapter.meta["confs"][kind]
        if len(confs) == 1:
            return confs[0], []
        if kind not in self.tuned:
            self._run(handler, confs[0], jobs)  # does not count: it pays for memory that nobody has touched yet
            tried = [self._try(handler, conf, jobs) for conf in confs]
            # This clock cannot reward prefetching.
            best = max(tried, key=lambda row: float(row["rate_from_go"]))["conf"]
            self.tuned[kind] = best, [{name: row[name] for name in KEPT} for row in tried]
        return self.tuned[kind]

    def _try(self, handler: str, conf: Conf, jobs: int) -> Row:
        row = self._run(handler, conf, jobs)
        say("   tried", conf, f"{row['rate']:,.0f}/s, from GO {row['rate_from_go']:,.0f}/s")
        return row

    def _run(self, handler: str, conf: Conf, jobs: int) -> Row:
        return self.loaded(handler, conf, 1, jobs, self.sizes.tune_seconds)

    def drained(
        self,
        handler: str,
        conf: Conf,
        workers: int,
        target: int,
        timeout: float,
        *,
        at_least: float = 0,
        tidy: str = "vacuum analyze",
    ) -> Row:
        """Workers on what is queued already, until the database shows that `target` jobs are done."""
        self.postgres.run(tidy)
        with self.postgres.connect() as conn, running(self.adapter, handler, conf, workers) as started:
            row = Drain(self, conn, started).run(target, timeout, at_least)
        return {**row, "conf": dict(conf)}


class Drain:
    """The clocks, from the workers' GO to the last job that counts."""

    def __init__(self, stand: Stand, conn: Connection, workers: list[Worker]) -> None:
        self._postgres, self._conn, self._workers = stand.postgres, conn, workers
        self._left_sql: str = stand.adapter.meta["left_sql"]
        self._total = self._left()
        self._watch = Watch(stand.postgres, workers)
        self._worker_cpu, self._postgres_cpu = self._cpu(), self._postgres.cpu()
        self._wal = first_value(conn, WAL_NOW)

    def run(self, target: int, timeout: float, at_least: float) -> Row:
        for worker in self._workers:
            worker.go()
        self._went = time.monotonic()
        while (ended := self._ended(target, timeout, at_least)) is None:
            time.sleep(POLL_SECONDS)
        return self._row(*ended)

    def _ended(self, target: int, timeout: float, at_least: float) -> tuple[float, int, bool] | None:
        """When, how many jobs were done, and whether it was for lack of time."""
        for worker in self._workers:
            worker.must_live()
        late = time.monotonic() - self._went > timeout
        # Counting the rest may take long. So it is asked only when the workers say that they began the last job.
        if not late and (self._handled() < target or time.monotonic() - self._went < at_least):
            return None
        at, done = time.monotonic(), self._total - self._left()
        return (at, done, late) if late or done >= target else None

    def _row(self, at: float, done: int, late: bool) -> Row:
        foreign, worker_cpu = self._watch.foreign_cores(), self._cpu() - self._worker_cpu
        postgres_cpu = self._postgres.cpu() - self._postgres_cpu
        wal = float(first_value(self._conn, WAL_SINCE, {"since": self._wal}))
        starts = [worker.first_start for worker in self._workers if worker.first_start is not None]
        if not done or not starts:
            raise AdapterFailed("no job was done: " + "".join(worker.said_wrong() for worker in self._workers))
        seconds = at - min(starts)
        return {
            "rate": done / seconds,
            "rate_from_go": done / (at - self._went),
            "jobs": done,
            "handled": self._handled(),
            "total": self._total,
            "seconds": seconds,
            "timed_out": late,
            "foreign_cores": foreign,
            "worker_cpu_s_per_1k": worker_cpu / done * 1000,
            "pg_cpu_s_per_1k": postgres_cpu / done * 1000,
            "wal_bytes_per_job": wal / done,
        }

    def _left(self) -> int:
        return int(first_value(self._conn, self._left_sql))

    def _handled(self) -> int:
        return sum(worker.count for worker in self._workers)

    def _cpu(self) -> float:
        return sum(worker.cpu() for worker in self._workers)

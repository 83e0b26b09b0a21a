"""S3: how long after its commit a job starts, on a worker that was idle."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench.peers.adapter import AdapterFailed
from bench.peers.stand import Conf, Stand
from bench.peers.watch import Row, Watch
from bench.peers.worker import Worker, running

EVERY = 0.02
SETTLE_SECONDS = 2.5
LAST_SECONDS = 8.0
PERCENTILES = (50, 95, 99)
Sent = Mapping[int, tuple[float, float]]  # called, committed


def latency(stand: Stand) -> Row:
    tried = [_undisturbed(stand, conf) for conf in stand.adapter.meta["confs"]["latency"]]
    return {**min(tried, key=lambda row: float(row["p95"])), "tried": tried}


def _undisturbed(stand: Stand, conf: Conf) -> Row:
    return stand.undisturbed(lambda: _once(stand, conf))


def _once(stand: Stand, conf: Conf) -> Row:
    stand.postgres.fresh()
    with running(stand.adapter, "latency", conf) as [worker]:
        worker.go()
        time.sleep(SETTLE_SECONDS)
        watch = Watch(stand.postgres, [worker])
        sent = _sent(stand.adapter.call("produce", stand.sizes.latency, EVERY, handler="latency"))
        _await_all(sent, worker)
        worker.must_live()
        if not worker.starts:
            raise AdapterFailed(f"no job was started: {worker.said_wrong()}")
        return {**_row(sent, worker.starts), "conf": dict(conf), "foreign_cores": watch.foreign_cores()}


def _sent(said: str) -> Sent:
    words = (line.split() for line in said.splitlines() if line.startswith("P "))
    return {int(i): (float(called), float(committed)) for _, i, called, committed in words}


def _await_all(sent: Sent, worker: Worker) -> None:
    deadline = time.monotonic() + LAST_SECONDS
    while time.monotonic() < deadline and not sent.keys() <= worker.starts.keys():
        time.sleep(0.05)


def _row(sent: Sent, starts: Mapping[int, float]) -> Row:
    seen = [i for i in sent if i in starts]
    committed = sorted((starts[i] - sent[i][1]) * 1000 for i in seen)
    called = sorted((starts[i] - sent[i][0]) * 1000 for i in seen)
    row: dict[str, Any] = {"n": len(seen), "lost": len(sent) - len(seen)}
    for percent in PERCENTILES:
        row[f"p{percent}"] = percentile(committed, percent)
        row[f"from_call_p{percent}"] = percentile(called, percent)
    return row


def percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]

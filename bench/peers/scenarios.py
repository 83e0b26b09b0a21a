"""What is measured of each peer. None is for what does not apply to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from psycopg.errors import InsufficientPrivilege

from bench.peers.adapter import AdapterFailed
from bench.peers.latency import latency
from bench.peers.postgres import BENCH
from bench.peers.stand import WAL_NOW, WAL_SINCE, Conf, Stand
from bench.peers.watch import Row, Watch, say
from bench.peers.worker import running

DEEP_SECONDS, DEEP_TIMEOUT = 2.0, 60.0
SETTLE_SECONDS = 15.0  # servers count a session's transactions up to 10 s late, and it takes some to begin
PINNED = "select backend_xmin is not null from pg_stat_activity where pid = %(pid)s"
TRANSACTIONS = "select xact_commit + xact_rollback from pg_stat_database where datname = %(name)s"


def s1(stand: Stand) -> Row | None:
    """Throughput of one process."""
    return _throughput(stand, 1, stand.sizes.throughput)


def s1l(stand: Stand) -> Row | None:
    """The same on a long queue: for the fast, whose S1 is over before it is exact."""
    return _throughput(stand, 1, stand.sizes.long) if stand.adapter.fast else None


def s2(stand: Stand) -> Row | None:
    """Throughput of two processes."""
    return _throughput(stand, 2, _long_enough(stand))


def s4(stand: Stand) -> Row | None:
    """Enqueueing: one by one on one connection, and in bulk."""
    chunks: list[int] = stand.adapter.meta["bulk_chunks"]
    row = {"single": _enqueued(stand, stand.sizes.single, 1)}
    bulk = [_enqueued(stand, stand.sizes.bulk, chunk) for chunk in chunks]
    return row | ({"bulk": max(bulk, key=lambda each: float(each["rate"]))} if bulk else {})


def s5(stand: Stand) -> Row | None:
    """Throughput with very many jobs ready."""
    meta = stand.adapter.meta
    if not meta.get("backlog_sql") and not meta.get("backlog_chunk"):
        return None
    conf, _ = _best(stand)  # first, as trying settings empties the database
    _fill_deep(stand)
    return _median(stand, lambda: _drained_deep(stand, conf))


def s6(stand: Stand) -> Row | None:
    """One INSERT of the user's for each job, one transaction for each job."""
    return _business(stand, "txn")


def s6b(stand: Stand) -> Row | None:
    """The same with one transaction for each batch."""
    return _business(stand, "txn_batch")


def s7(stand: Stand) -> Row | None:
    """Rounds of filling and emptying while another session's snapshot keeps every dead row from being removed."""
    return stand.undisturbed(lambda: _pinned_rounds(stand)) if stand.adapter.fast else None


def idle(stand: Stand) -> Row | None:
    """What a worker costs that has nothing to do. Only for who names settings for it."""
    confs = stand.adapter.meta["confs"].get("idle")
    return stand.undisturbed(lambda: _idle(stand, confs[0])) if confs else None


SCENARIOS: Final[dict[str, Callable[[Stand], Row | None]]] = {
    "S1": s1,
    "S1L": s1l,
    "S2": s2,
    "S3": latency,
    "S4": s4,
    "S5": s5,
    "S6": s6,
    "S6B": s6b,
    "S7": s7,
    "idle": idle,
}


def _long_enough(stand: Stand) -> int:
    return stand.sizes.long if stand.adapter.fast else stand.sizes.throughput


def _best(stand: Stand) -> tuple[Conf, list[Row]]:
    # The fast are tuned on the long queue: a run of less than a second mostly measures start-up and prefetching.
    return stand.tune("throughput", "noop", _long_enough(stand))


def _throughput(stand: Stand, workers: int, jobs: int) -> Row:
    conf, tried = _best(stand)
    row = _median(stand, lambda: stand.loaded("noop", conf, workers, jobs, stand.sizes.timeout))
    return {**row, "tried": tried}


def _median(stand: Stand, run: Callable[[], Row]) -> Row:
    """The run in the middle, with what became of all; one that ran out of time is not repeated."""
    rows: list[Row] = []
    for _ in range(stand.sizes.runs):
        rows.append(row := run())
        say(f"   {row['rate']:,.0f}/s")
        if row.get("timed_out"):
            break
    middle = sorted(rows, key=lambda each: float(each["rate"]))[len(rows) // 2]
    return {
        **middle,
        "all_rates": [round(each["rate"], 1) for each in rows],
        "worst_foreign_cores": max(each["foreign_cores"] for each in rows),
    }


def _enqueued(stand: Stand, jobs: int, chunk: int) -> Row:
    def run() -> Row:
        stand.postgres.fresh()
        since, watch = stand.postgres.run(WAL_NOW), Watch(stand.postgres)
        seconds = stand.adapter.enqueue(jobs, chunk)
        foreign = watch.foreign_cores()
        wal = float(stand.postgres.run(WAL_SINCE, since=since))
        return {"rate": jobs / seconds, "wal_bytes_per_job": wal / jobs, "chunk": chunk, "foreign_cores": foreign}

    return _median(stand, lambda: stand.undisturbed(run))


def _fill_deep(stand: Stand) -> None:
    meta, backlog = stand.adapter.meta, stand.sizes.backlog
    stand.postgres.fresh()
    if meta.get("backlog_seed"):
        stand.adapter.enqueue(1, 1)
    if meta.get("backlog_chunk"):
        stand.adapter.enqueue(backlog, meta["backlog_chunk"])
    else:
        stand.postgres.run(meta["backlog_sql"], n=backlog)
    # Loading left more pages to be written than there is room for: whoever works next would write them.
    with suppress(InsufficientPrivilege):
        stand.postgres.run("checkpoint")


def _drained_deep(stand: Stand, conf: Conf) -> Row:
    return stand.undisturbed(
        lambda: stand.drained("noop", conf, 1, stand.sizes.deep, DEEP_TIMEOUT, at_least=DEEP_SECONDS)
    )


def _business(stand: Stand, kind: str) -> Row | None:
    if kind not in stand.adapter.meta["confs"]:
        return None
    jobs = stand.sizes.business
    conf, tried = stand.tune(kind, kind, jobs)

    def run() -> Row:
        row = stand.loaded(kind, conf, 1, jobs, stand.sizes.timeout)
        return {**row, "biz_rows": stand.postgres.run("select count(*) from bench_biz")}

    return {**_median(stand, run), "atomic": stand.adapter.meta["atomic_txn"], "tried": tried}


def _pinned_rounds(stand: Stand) -> Row:
    stand.postgres.fresh()
    with stand.postgres.connect() as pin:
        pin.execute("begin isolation level repeatable read")
        pin.execute("select 1")
        rounds = _rounds(stand)
        if not stand.postgres.run(PINNED, pid=pin.info.backend_pid):
            raise AdapterFailed("the other session pinned nothing")
    return {
        "rates": [round(each["rate"], 1) for each in rounds],
        "ratio": rounds[-1]["rate"] / rounds[0]["rate"],
        "rounds": rounds,
        "timed_out": rounds[-1]["timed_out"],
        "foreign_cores": max(each["foreign_cores"] for each in rounds),
        "conf": rounds[0]["conf"],
    }


def _rounds(stand: Stand) -> list[Row]:
    (conf, _), jobs, rows = _best(stand), stand.sizes.pinned, list[Row]()
    for _ in range(stand.sizes.rounds):
        stand.adapter.enqueue(jobs, 1000)
        # Vacuuming is autovacuum's business here.
        rows.append(row := stand.drained("noop", conf, 1, jobs, stand.sizes.timeout, tidy="analyze"))
        say(f"   {row['rate']:,.0f}/s, handled {row['handled']} of {row['jobs']}")
        if row["timed_out"]:
            break
    return rows


def _idle(stand: Stand, conf: Conf) -> Row:
    stand.postgres.fresh()
    with running(stand.adapter, "noop", conf) as [worker]:
        worker.go()
        time.sleep(SETTLE_SECONDS)
        watch, began = Watch(stand.postgres, [worker]), time.monotonic()
        cpu, transactions = worker.cpu(), _transactions(stand)
        time.sleep(stand.sizes.idle_seconds)
        seconds = time.monotonic() - began
        worker.must_live()
        return {
            "cores": (worker.cpu() - cpu) / seconds,
            "queries_per_second": (_transactions(stand) - transactions) / seconds,
            "seconds": seconds,
            "foreign_cores": watch.foreign_cores(),
            "conf": dict(conf),
        }


def _transactions(stand: Stand) -> int:
    """In the worker's database, asked from another. A worker's queries are transactions of their own when idle."""
    return int(stand.postgres.outside(TRANSACTIONS, name=BENCH))

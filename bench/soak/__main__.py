"""python -m bench.soak [--minutes 10]: one worker at full speed for long. Does it grow?"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import asyncpg

from bench.__main__ import RESULTS, server
from bench.soak.worker import Sample, Worker, running
from ostinato import NewJob, enqueue_many
from ostinato.migrations import migrate, read_migrations

MIX = {"noop": 9_600, "flaky": 200, "waits": 100, "sells": 100}  # in each chunk
RARE = {"threaded": 20, "isolated": 2}
ENOUGH = 30_000  # jobs that wait
LOOK_SECONDS = 0.1
SAMPLE_SECONDS = 5.0
MORE_MEMORY = 1.05  # what the end may have over the beginning: Python's arenas breathe
MORE_OF_ANYTHING = 2
COUNTED = ("descriptors", "threads", "tasks", "connections", "processes")
# At full speed for ten minutes, the finished jobs would fill a small disk.
FORGET = "truncate ostinato.job_history"
CONNECTIONS = """
select count(*) from pg_stat_activity where datname = current_database() and application_name = 'ostinato'
"""
DONE = "select count(*) from ostinato.job_history"
LEFT = "select count(*) from (select from ostinato.jobs limit $1) as waiting"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description="Does a worker grow?")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--dsn", help="a database of your own that may be overwritten; else an embedded server")
    asked = parser.parse_args()
    with server(asked.dsn) as dsn:
        samples, lost = asyncio.run(soak(dsn, asked.minutes * 60))
    findings = judge(samples)
    if lost:
        findings.append(f"{lost} jobs were enqueued and not completed")
    _write(samples, findings)
    print("\n".join(findings) or "it did not grow, and lost nothing")
    return 1 if findings else 0


async def soak(dsn: str, seconds: float) -> tuple[list[Sample], int]:
    conn, feeder = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    await conn.execute("drop schema if exists ostinato cascade; drop table if exists soaked")
    await migrate(conn, read_migrations())
    await conn.execute("create table soaked (at timestamptz not null default now())")
    fed = Fed()
    with running(dsn) as worker:
        feeding = asyncio.create_task(_feed(feeder, fed, seconds))
        samples = await _watch(conn, worker, fed, feeding)
    fed.done += await conn.fetchval(DONE)
    lost = fed.enqueued - fed.done
    await conn.close()
    await feeder.close()
    return samples, lost


class Fed:
    """How many jobs were enqueued, and how many of those that were forgotten since had been completed."""

    def __init__(self) -> None:
        self.enqueued = 0
        self.done = 0


async def _feed(conn: Any, fed: Fed, seconds: float) -> None:
    ends = time.monotonic() + seconds
    chunk = [NewJob(name) for name, jobs in (MIX | RARE).items() for _ in range(jobs)]
    while time.monotonic() < ends:
        if await conn.fetchval(LEFT, ENOUGH) < ENOUGH:
            await enqueue_many(conn, chunk)
            fed.enqueued += len(chunk)
        else:
            await asyncio.sleep(LOOK_SECONDS)


async def _watch(conn: Any, worker: Worker, fed: Fed, feeding: asyncio.Task[None]) -> list[Sample]:
    """Until nothing is left to do."""
    samples: list[Sample] = []
    began = time.monotonic()
    print(f"{'s':>6}{'jobs/s':>9}{'MiB':>8}" + "".join(f"{name:>13}" for name in COUNTED), flush=True)
    while not feeding.done() or await conn.fetchval(LEFT, 1):
        await asyncio.sleep(SAMPLE_SECONDS)
        await _forget(conn, fed)
        sample = Sample(
            seconds=time.monotonic() - began,
            done=fed.done,
            memory_kib=worker.memory_kib(),
            descriptors=worker.descriptors(),
            threads=worker.threads(),
            tasks=worker.tasks,
            connections=await conn.fetchval(CONNECTIONS),
            processes=worker.processes(),
        )
        _show(sample, samples[-1] if samples else None)
        if not feeding.done():  # then it is at full speed
            samples.append(sample)
    await feeding
    return samples


async def _forget(conn: Any, fed: Fed) -> None:
    async with conn.transaction():
        await conn.execute("lock table ostinato.job_history in access exclusive mode")
        fed.done += await conn.fetchval(DONE)
        await conn.execute(FORGET)


def judge(samples: Sequence[Sample]) -> list[str]:
    """The last fifth beside the second: the first is for warming up."""
    fifth = len(samples) // 5
    if not fifth:
        return [f"{len(samples)} samples are too few to judge"]
    early, late = samples[fifth : 2 * fifth], samples[-fifth:]
    findings = []
    before, after = (statistics.median(each.memory_kib for each in some) for some in (early, late))
    if after > before * MORE_MEMORY:
        findings.append(f"memory grew from {before / 1024:.1f} to {after / 1024:.1f} MiB")
    for name in COUNTED:
        before, after = (statistics.median(getattr(each, name) for each in some) for some in (early, late))
        if after > before + MORE_OF_ANYTHING:
            findings.append(f"{name} grew from {before:g} to {after:g}")
    return findings


def _show(sample: Sample, last: Sample | None) -> None:
    seconds, done = (last.seconds, last.done) if last else (0.0, 0)
    rate = (sample.done - done) / (sample.seconds - seconds)
    counts = "".join(f"{getattr(sample, name):>13}" for name in COUNTED)
    print(f"{sample.seconds:>6.0f}{rate:>9,.0f}{sample.memory_kib / 1024:>8.1f}{counts}", flush=True)


def _write(samples: Sequence[Sample], findings: list[str]) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / time.strftime("soak-%Y-%m-%dT%H%M%S.json")
    path.write_text(json.dumps({"samples": [asdict(each) for each in samples], "findings": findings}, indent=1))


if __name__ == "__main__":
    sys.exit(main())

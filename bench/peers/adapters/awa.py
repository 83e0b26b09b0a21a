"""awa: a Rust core under a Python API; queue storage (append-only, its default), COPY for bulk, buffered completion."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import asyncpg
import awa
import uvloop

from bench.peers.adapters.protocol import BUSINESS_INSERT, DSN, Peer, main, progress, versions


@dataclass
class Noop:
    i: int


class Awa(Peer):
    meta: ClassVar[dict[str, Any]] = {
        "peer": "awa",
        "fast": True,
        "versions": {**versions("awa-pg", "uvloop"), "awa": versions("awa-pg")["awa-pg"]},
        "bulk_chunks": [1000, 20000],
        # Not the public view awa.jobs: with 10,000 finished jobs a count there took 0.3 s, and a minute before ANALYZE.
        "left_sql": "SELECT (SELECT count(*) FROM awa.ready_entries) - (SELECT coalesce(sum(completed_count), 0) "
        "FROM awa.receipt_completion_batches) - (SELECT count(*) FROM awa.done_entries)",
        "backlog_chunk": 20000,
        "atomic_txn": False,
        "note": "keeps finished jobs until their segment is truncated (seconds to minutes)",
        "confs": {
            "throughput": [
                {"max_workers": 50, "default": True},
                {"max_workers": 512},
                {"max_workers": 1024},
                {"max_workers": 4096},
                {"max_workers": 1024, "deadline_duration_ms": 0},
                {"max_workers": 1024, "claimers": 2},
                {"max_workers": 4096, "claim_batch_size": 2048},
                {"max_workers": 4096, "claim_batch_size": 2048, "env": {"AWA_COMPLETION_BATCH_SIZE": "2048"}},
            ],
            "latency": [{"max_workers": 50}, {"max_workers": 50, "poll_interval_ms": 20}],
            "txn": [{"max_workers": w, "biz_pool": 10} for w in (50, 512, 1024)],
        },
    }
    engine, role = "queue_storage", "auto"

    async def setup(self) -> None:
        client = awa.AsyncClient(DSN)
        await client.migrate()
        client.task(Noop)(lambda job: None)
        # On an empty database it is the first worker that turns queue storage on.
        await client.start([("default", 1)], storage_transition_role=self.role)
        await client.shutdown()
        assert json.loads(await client.storage_status())["active_engine"] == self.engine

    async def open(self) -> None:
        self.client = awa.AsyncClient(DSN, max_connections=2)

    async def close(self) -> None:
        await self.client.close()

    async def enqueue_one(self, i: int) -> None:
        await self.client.insert(Noop(i))

    async def enqueue_many(self, ids: Sequence[int]) -> None:
        await self.client.enqueue_many_copy([Noop(i) for i in ids])

    async def work(self, handler: str, conf: dict[str, Any]) -> None:
        os.environ.update(conf.pop("env", {}))  # its completion settings are environment variables
        poll = conf.pop("poll_interval_ms", 200)
        pool = await asyncpg.create_pool(DSN, min_size=0, max_size=conf.pop("biz_pool", 1))
        client = awa.AsyncClient(DSN)
        client.task(Noop)(handlers(pool)[handler])
        await client.start([{"name": "default", **conf}], poll_interval_ms=poll, storage_transition_role=self.role)
        await asyncio.Event().wait()


def handlers(pool: "asyncpg.Pool[Any]") -> dict[str, Any]:
    async def noop(job: Any) -> None:
        progress.hit()

    async def latency(job: Any) -> None:
        progress.probe(job.args.i)

    async def txn(job: Any) -> None:
        progress.hit()
        await pool.execute(BUSINESS_INSERT.format("$1"), job.args.i)

    return {"noop": noop, "latency": latency, "txn": txn}


if __name__ == "__main__":
    main(Awa(), uvloop.run)

"""Not a product: the least a correct queue must do on this machine, as a ceiling for the others.

One claim statement per batch (UPDATE .. FOR UPDATE SKIP LOCKED .. RETURNING), one completion statement
per batch (DELETE or UPDATE), each its own durable transaction; no retries, no heartbeats, no history.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn, TypeAlias

import asyncpg
import uvloop

from bench.peers.adapters.protocol import DSN, Peer, main, progress, versions

DDL = """
CREATE TABLE limit_jobs (id bigserial PRIMARY KEY, state smallint NOT NULL DEFAULT 0, payload jsonb NOT NULL);
CREATE INDEX limit_ready ON limit_jobs (id) WHERE state = 0;
"""
CLAIM = """
UPDATE limit_jobs SET state = 1 WHERE id = ANY(ARRAY(
    SELECT id FROM limit_jobs WHERE state = 0 ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING id, payload
"""
FINISH = {
    "delete": "DELETE FROM limit_jobs WHERE id = ANY($1::bigint[])",
    "update": "UPDATE limit_jobs SET state = 2 WHERE id = ANY($1::bigint[])",
}
TXN = """
WITH done AS (DELETE FROM limit_jobs WHERE id = ANY($1::bigint[]) RETURNING id)
INSERT INTO bench_biz (job) SELECT id FROM done
"""
Statement: TypeAlias = "asyncpg.prepared_stmt.PreparedStatement[asyncpg.Record]"


class Limit(Peer):
    meta: ClassVar[dict[str, Any]] = {
        "peer": "limit",
        "fast": True,
        "versions": versions("asyncpg", "uvloop"),
        "bulk_chunks": [1000, 20000],
        "left_sql": "SELECT count(*) FROM limit_jobs WHERE state <> 2",
        "backlog_sql": "INSERT INTO limit_jobs (payload) "
        "SELECT jsonb_build_object('i', g) FROM generate_series(1, %(n)s) g",
        "atomic_txn": True,
        "note": "bare claim+complete, no queue features",
        "confs": {
            "throughput": [
                {"batch": b, "conns": c, "finish": f}
                for f in ("delete", "update")
                for b in (1, 10, 100, 500)
                for c in (1, 2, 3, 4)
            ],
            "latency": [{"batch": 10, "conns": 1, "finish": "delete"}],
            "txn": [{"batch": 100, "conns": c, "finish": "delete"} for c in (1, 4, 8)],
            "txn_batch": [{"batch": 100, "conns": 2, "finish": "delete"}],
        },
    }

    async def setup(self) -> None:
        conn = await asyncpg.connect(DSN)
        await conn.execute(DDL)

    async def open(self) -> None:
        self.conn = await asyncpg.connect(DSN)

    async def enqueue_one(self, i: int) -> None:
        await self.conn.execute(
            "WITH j AS (INSERT INTO limit_jobs (payload) VALUES ($1) RETURNING id) "
            "SELECT pg_notify('limit', '') FROM j",
            f'{{"i": {i}}}',
        )

    async def enqueue_many(self, ids: Sequence[int]) -> None:
        await self.conn.copy_records_to_table(
            "limit_jobs", columns=["payload"], records=[(f'{{"i": {i}}}',) for i in ids]
        )

    async def work(self, handler: str, conf: dict[str, Any]) -> None:
        await asyncio.gather(*(self._loop(handler, conf) for _ in range(conf["conns"])))

    async def _loop(self, handler: str, conf: dict[str, Any]) -> NoReturn:
        conn, wake = await asyncpg.connect(DSN), asyncio.Event()
        await conn.add_listener("limit", lambda *_: wake.set())
        claim, finish = await conn.prepare(CLAIM), await conn.prepare(FINISH[conf["finish"]])
        finish_with_insert = await conn.prepare(TXN)
        while True:
            wake.clear()
            if not (jobs := await claim.fetch(conf["batch"])):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(wake.wait(), 1)
            elif handler.startswith("txn"):
                await _insert(finish_with_insert, jobs, step=1 if handler == "txn" else len(jobs))
            else:
                _handle(handler, jobs)
                await finish.fetch([job["id"] for job in jobs])


async def _insert(finish: Statement, jobs: list[asyncpg.Record], step: int) -> None:
    """The business row and the completion in one statement, hence atomic."""
    for first in range(0, len(jobs), step):
        batch = jobs[first : first + step]
        for _ in batch:
            progress.hit()
        await finish.fetch([job["id"] for job in batch])


def _handle(handler: str, jobs: list[asyncpg.Record]) -> None:
    for job in jobs:
        if handler == "latency":
            progress.probe(int(job["payload"][6:-1]))
        else:
            progress.hit()


if __name__ == "__main__":
    main(Limit(), uvloop.run)

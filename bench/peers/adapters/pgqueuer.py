"""pgqueuer: asyncpg + uvloop (what its CLI uses), batched dequeue, buffered completion."""

from collections.abc import Sequence
from typing import Any, ClassVar

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from bench.peers.adapters.protocol import BUSINESS_INSERT, DSN, Peer, main, progress, versions


class Pgqueuer(Peer):
    meta: ClassVar[dict[str, Any]] = {
        "peer": "pgqueuer",
        "fast": True,
        "versions": versions("pgqueuer", "asyncpg", "uvloop"),
        "bulk_chunks": [1000, 20000],
        "left_sql": "SELECT count(*) FROM pgqueuer",
        "backlog_sql": "SET session_replication_role = replica; "
        "INSERT INTO pgqueuer (priority, status, entrypoint, payload, execute_after) "
        "SELECT 0, 'queued', 'noop', g::text::bytea, now() FROM generate_series(1, %(n)s) g",
        "atomic_txn": False,
        "note": "deletes finished jobs, keeps log rows per state change",
        "confs": {
            "throughput": [
                {"batch": 10, "pool": 0, "default": True},
                {"batch": 100, "pool": 0},
                {"batch": 500, "pool": 0},
                {"batch": 100, "pool": 4},
                {"batch": 500, "pool": 4},
            ],
            "latency": [{"batch": 10, "pool": 0}, {"batch": 10, "pool": 4}],
            "txn": [{"batch": 10, "pool": 0, "biz_pool": 10}, {"batch": 100, "pool": 0, "biz_pool": 10}],
        },
    }

    async def setup(self) -> None:
        await Queries(AsyncpgDriver(await asyncpg.connect(DSN))).install()

    async def open(self) -> None:
        self.conn = await asyncpg.connect(DSN)
        self.queries = Queries(AsyncpgDriver(self.conn))

    async def enqueue_one(self, i: int) -> None:
        await self.queries.enqueue("noop", b"%d" % i)

    async def enqueue_many(self, ids: Sequence[int]) -> None:
        await self.queries.enqueue(["noop"] * len(ids), [b"%d" % i for i in ids], [0] * len(ids))

    async def work(self, handler: str, conf: dict[str, Any]) -> None:
        if conf["pool"]:
            pool = await asyncpg.create_pool(DSN, min_size=conf["pool"], max_size=conf["pool"])
            queue = PgQueuer.from_asyncpg_pool(pool)
        else:
            queue = PgQueuer.from_asyncpg_connection(await asyncpg.connect(DSN))
        business = await asyncpg.create_pool(DSN, min_size=0, max_size=conf.get("biz_pool", 1))
        queue.entrypoint("noop")(handlers(business)[handler])
        await queue.run(batch_size=conf["batch"])


def handlers(pool: "asyncpg.Pool[Any]") -> dict[str, Any]:
    async def noop(job: Any) -> None:
        progress.hit()

    async def latency(job: Any) -> None:
        progress.probe(int(job.payload))

    async def txn(job: Any) -> None:
        progress.hit()
        await pool.execute(BUSINESS_INSERT.format("$1"), int(job.payload))

    return {"noop": noop, "latency": latency, "txn": txn}


if __name__ == "__main__":
    main(Pgqueuer(), uvloop.run)

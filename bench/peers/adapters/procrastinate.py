"""procrastinate: psycopg 3 pool, asyncio worker, jobs fetched one by one."""

import logging
from collections.abc import Sequence
from typing import Any, ClassVar

import procrastinate

from bench.peers.adapters.protocol import BUSINESS_INSERT, DSN, Peer, main, progress, versions

logging.getLogger("procrastinate").setLevel(logging.ERROR)  # it warns about being the main module


class Procrastinate(Peer):
    meta: ClassVar[dict[str, Any]] = {
        "peer": "procrastinate",
        "versions": versions("procrastinate", "psycopg", "psycopg-pool"),
        "bulk_chunks": [1000, 20000],
        "left_sql": "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
        # Triggers off while loading: per-row NOTIFY and event rows would only slow the load down.
        "backlog_sql": "SET session_replication_role = replica; "
        "INSERT INTO procrastinate_jobs (queue_name, task_name, args) "
        "SELECT 'default', 'noop', jsonb_build_object('i', g) FROM generate_series(1, %(n)s) g",
        "atomic_txn": False,
        "note": "default keeps finished jobs and an event row per state change; delete=successful removes both",
        "confs": {
            "throughput": [
                {"concurrency": 1, "pool": 4, "default": True},
                {"concurrency": 10, "pool": 10},
                {"concurrency": 50, "pool": 20},
                {"concurrency": 10, "pool": 10, "delete": "successful"},
            ],
            "latency": [{"concurrency": 10, "pool": 10}],
            "txn": [{"concurrency": 10, "pool": 20}],
        },
    }

    def app(self, pool: int) -> procrastinate.App:
        return procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=DSN, min_size=pool, max_size=pool))

    def task(self, app: procrastinate.App, func: Any) -> Any:
        return app.task(name="noop", queue="default")(func)

    async def setup(self) -> None:
        async with (app := self.app(1)).open_async():
            await app.schema_manager.apply_schema_async()

    async def open(self) -> None:
        self.opened = self.app(1)
        await self.opened.open_async()
        self.noop = self.task(self.opened, handlers(self.opened)["noop"])

    async def close(self) -> None:
        await self.opened.close_async()

    async def enqueue_one(self, i: int) -> None:
        await self.noop.defer_async(i=i)

    async def enqueue_many(self, ids: Sequence[int]) -> None:
        await self.noop.batch_defer_async(*({"i": i} for i in ids))

    async def work(self, handler: str, conf: dict[str, Any]) -> None:
        app = self.app(conf["pool"])
        self.task(app, handlers(app)[handler])
        async with app.open_async():
            await app.run_worker_async(
                concurrency=conf["concurrency"], install_signal_handlers=False, delete_jobs=conf.get("delete", "never")
            )


def handlers(app: procrastinate.App) -> dict[str, Any]:
    async def noop(i: int) -> None:
        progress.hit()

    async def latency(i: int) -> None:
        progress.probe(i)

    async def txn(i: int) -> None:
        progress.hit()
        async with app.connector.pool.connection() as conn:
            await conn.execute(BUSINESS_INSERT.format("%s"), (i,))

    return {"noop": noop, "latency": latency, "txn": txn}


if __name__ == "__main__":
    main(Procrastinate())

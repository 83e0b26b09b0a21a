"""chancy: psycopg 3, AsyncExecutor, eager polling; completions flushed in batches every send_outgoing_interval."""

import logging
from collections.abc import Sequence
from typing import Any, ClassVar

import psycopg_pool
from chancy import Chancy, Queue, Worker, job
from chancy.plugins.leadership import Leadership
from chancy.plugins.pruner import Pruner
from chancy.plugins.recovery import Recovery
from chancy.plugins.workflow import WorkflowPlugin

from bench.peers.adapters.protocol import BUSINESS_INSERT, DSN, HANDLER, Peer, main, progress, versions

pools: list[psycopg_pool.AsyncConnectionPool] = []  # of one worker, for its business rows
log = logging.getLogger("chancy_quiet")
log.setLevel(logging.WARNING)


@job(queue="default")
async def noop(*, i: int) -> None:
    progress.hit()


@job(queue="default")
async def latency(*, i: int) -> None:
    progress.probe(i)


@job(queue="default")
async def txn(*, i: int) -> None:
    progress.hit()
    async with pools[0].connection() as conn:
        await conn.execute(BUSINESS_INSERT.format("%s"), (i,))


HANDLERS = {"noop": noop.job, "latency": latency.job, "txn": txn.job}


class ChancyPeer(Peer):
    meta: ClassVar[dict[str, Any]] = {
        "peer": "chancy",
        "versions": versions("chancy", "psycopg"),
        "bulk_chunks": [1000, 20000],
        "left_sql": "SELECT count(*) FROM chancy_jobs WHERE state NOT IN ('succeeded', 'failed')",
        "backlog_sql": "INSERT INTO chancy_jobs "
        "SELECT (jsonb_populate_record(j, jsonb_build_object('id', lpad(to_hex(g), 32, '0')))).* "
        "FROM chancy_jobs j, generate_series(1, %(n)s) g",
        "backlog_seed": 1,
        "atomic_txn": False,
        "note": "keeps finished jobs until pruned; completions written once a second by default",
        "confs": {
            "throughput": [
                {"concurrency": 100},
                {"concurrency": 1000},
                {"concurrency": 1000, "flush": 0.1},
                {"concurrency": 4000, "flush": 0.1},
                {"concurrency": 1000, "flush": 0.1, "metrics": False},
            ],
            "latency": [{"concurrency": 100}],
            "txn": [{"concurrency": 100, "biz_pool": 10}, {"concurrency": 1000, "flush": 0.1, "biz_pool": 10}],
        },
    }

    def app(self, metrics: bool = True) -> Any:
        if metrics:
            return Chancy(DSN, log=log)
        # The default plugins less Metrics, which takes about half of the worker's time on no-op jobs.
        return Chancy(
            DSN, log=log, no_default_plugins=True, plugins=[Leadership(), Pruner(), Recovery(), WorkflowPlugin()]
        )

    async def setup(self) -> None:
        async with self.app() as c:
            await c.migrate()

    async def open(self) -> None:
        self.client = await self.app().__aenter__()
        self.job = HANDLERS[HANDLER]

    async def close(self) -> None:
        await self.client.__aexit__(None, None, None)

    async def enqueue_one(self, i: int) -> None:
        await self.client.push(self.job.with_kwargs(i=i))

    async def enqueue_many(self, ids: Sequence[int]) -> None:
        async for _ in self.client.push_many([self.job.with_kwargs(i=i) for i in ids], batch_size=len(ids)):
            pass

    async def work(self, handler: str, conf: dict[str, Any]) -> None:
        if handler == "txn":
            pools.append(psycopg_pool.AsyncConnectionPool(DSN, min_size=1, max_size=conf["biz_pool"], open=False))
            await pools[0].open()
        async with self.app(conf.get("metrics", True)) as c:
            await c.declare(
                Queue(
                    "default",
                    concurrency=conf["concurrency"],
                    executor=Chancy.Executor.Async,
                    polling_interval=1,
                    eager_polling=True,
                ),
                upsert=True,
            )
            worker = Worker(c, register_signal_handlers=False)
            worker.send_outgoing_interval = conf.get("flush", 1)
            async with worker:
                await worker.wait_for_shutdown()


if __name__ == "__main__":
    main(ChancyPeer())

"""What is measured. Every figure is a rate in jobs per second; what counts is the ratio of two of them."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from bench.limit import Limit
from bench.ours import Ours

Connection: TypeAlias = "asyncpg.Connection[Any]"
PAD = "x" * 100
CONNECTIONS = 2
BATCH = 500
BESIDE = "ostinato_bench_beside"


@dataclass(frozen=True)
class Sizes:
    single: int = 5_000
    bulk: int = 50_000
    chunk: int = 5_000
    drain: int = 100_000
    backlog: int = 1_000_000
    history: int = 5_000_000
    pinned_rounds: int = 5
    pinned: int = 60_000
    rounds: int = 5

    def tenth(self) -> Sizes:
        return Sizes(
            single=self.single // 10,
            bulk=self.bulk // 10,
            chunk=self.chunk // 10,
            drain=self.drain // 10,
            backlog=self.backlog // 10,
            history=self.history // 10,
            pinned=self.pinned // 10,
            rounds=2,
        )


@dataclass(frozen=True)
class Figure:
    """`measured` over `against`; the ratio should reach `goal`."""

    name: str
    measured: list[float]
    against: list[float]
    goal: float

    @property
    def ratio(self) -> float:
        return statistics.median(self.measured) / statistics.median(self.against)

    @property
    def reached(self) -> bool:
        return self.ratio >= self.goal


class Bench:
    def __init__(self, dsn: str, sizes: Sizes) -> None:
        self.dsn = dsn
        self.sizes = sizes
        self.ours, self.limit = Ours(), Limit()

    async def enqueue(self) -> Figure:
        """One job, one transaction, awaited one by one on one connection."""
        return await self._against_limit("single enqueue", self._enqueue_single, 0.75)

    async def enqueue_bulk(self) -> Figure:
        """Chunks of jobs, each chunk one statement (the limit: COPY), on one connection."""
        return await self._against_limit("bulk enqueue", self._enqueue_bulk, 0.30)

    async def drain(self) -> Figure:
        """Claim and complete in batches on two connections (the limit: claim and delete)."""
        return await self._against_limit("claim + complete", self._drain_all, 0.40)

    async def backlog(self) -> Figure:
        """The same number of jobs, alone and at the head of a million."""
        return await self._flat("with 1M backlog", backlog=self.sizes.backlog)

    async def history(self) -> Figure:
        """The same with five million rows of history."""
        return await self._flat("with 5M history", history=self.sizes.history)

    async def pinned(self) -> Figure:
        """Rounds of filling and draining while another session pins xmin; the last ones against the first."""
        async with AsyncExitStack() as stack:
            holder = await self._connect(stack, self.dsn)
            conn, workers = await self._prepared(stack, self.dsn)
            await self._drained(conn, self.sizes.pinned, workers)
            await holder.execute("begin isolation level repeatable read")
            await holder.fetchval("select 1")
            rates = [await self._drained(conn, self.sizes.pinned, workers) for _ in range(self.sizes.pinned_rounds)]
            if not await conn.fetchval(
                "select backend_xmin from pg_stat_activity where pid = $1", holder.get_server_pid()
            ):
                raise RuntimeError("the other session pinned nothing")
        return Figure("over 300k jobs, xmin pinned", rates[-2:], rates[:2], 0.95)

    async def _against_limit(self, name: str, measure: Any, goal: float) -> Figure:
        """Ours and the limit take turns, so that what the neighbours do hits both."""
        ours, limit = [], []
        for _ in range(self.sizes.rounds):
            limit.append(await measure(self.limit))
            ours.append(await measure(self.ours))
        return Figure(name, ours, limit, goal)

    async def _flat(self, name: str, backlog: int = 0, history: int = 0) -> Figure:
        """Two databases of one server take turns: one with the burden, one without."""
        plain, full = [], []
        async with AsyncExitStack() as stack:
            light, light_workers = await self._prepared(stack, await self._beside(stack))
            burdened, burdened_workers = await self._prepared(stack, self.dsn)
            if history:
                await self.ours.fill_history(burdened, history)
            if backlog:
                await self.ours.fill(burdened, backlog)
            for _ in range(self.sizes.rounds):
                plain.append(await self._drained(light, self.sizes.drain, light_workers))
                full.append(await self._drained(burdened, self.sizes.drain, burdened_workers))
        return Figure(name, full, plain, 0.95)

    async def _beside(self, stack: AsyncExitStack) -> str:
        """A second database on the same server, for as long as the stack lasts."""
        conn = await self._connect(stack, self.dsn)
        await conn.execute(f"drop database if exists {BESIDE}")
        await conn.execute(f"create database {BESIDE}")
        stack.push_async_callback(conn.execute, f"drop database {BESIDE} with (force)")
        return urlunsplit(urlsplit(self.dsn)._replace(path=f"/{BESIDE}"))

    async def _prepared(self, stack: AsyncExitStack, dsn: str) -> tuple[Connection, list[Connection]]:
        conn = await self._connect(stack, dsn)
        await self.ours.setup(conn)
        return conn, [await self._connect(stack, dsn) for _ in range(CONNECTIONS)]

    async def _drained(self, conn: Connection, jobs: int, workers: list[Connection]) -> float:
        await self.ours.fill(conn, jobs)
        # Else what is measured also writes out what the filling left dirty: five million rows more in one case.
        await conn.execute("checkpoint")
        return await self._drain(workers, self.ours, jobs)

    async def _enqueue_single(self, system: Ours | Limit) -> float:
        return await self._timed(system, self.sizes.single, self.sizes.single, system.enqueue)

    async def _enqueue_bulk(self, system: Ours | Limit) -> float:
        return await self._timed(system, self.sizes.bulk, self.sizes.chunk, system.enqueue_bulk)

    async def _timed(self, system: Ours | Limit, jobs: int, chunk: int, enqueue: Any) -> float:
        payloads = [{"n": n, "pad": PAD} for n in range(chunk)]
        async with AsyncExitStack() as stack:
            conn = await self._connect(stack, self.dsn)
            await system.setup(conn)
            await enqueue(conn, payloads[:10])
            began = time.perf_counter()
            for _ in range(jobs // chunk):
                await enqueue(conn, payloads)
            return jobs / (time.perf_counter() - began)

    async def _drain_all(self, system: Ours | Limit) -> float:
        async with AsyncExitStack() as stack:
            conn = await self._connect(stack, self.dsn)
            await system.setup(conn)
            await system.fill(conn, self.sizes.drain)
            workers = [await self._connect(stack, self.dsn) for _ in range(CONNECTIONS)]
            return await self._drain(workers, system, self.sizes.drain)

    async def _drain(self, conns: list[Connection], system: Ours | Limit, jobs: int) -> float:
        began = time.perf_counter()
        work: list[Awaitable[int]] = [system.drain(conn, BATCH, jobs // CONNECTIONS) for conn in conns]
        done = sum(await asyncio.gather(*work))
        return done / (time.perf_counter() - began)

    async def _connect(self, stack: AsyncExitStack, dsn: str) -> Connection:
        conn = await asyncpg.connect(dsn)
        stack.push_async_callback(conn.close)
        return conn


SCENARIOS = ("enqueue", "enqueue_bulk", "drain", "backlog", "history", "pinned")

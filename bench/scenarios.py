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
from ostinato.dsn import Dsn
from ostinato.postgres import open_pool

Connection: TypeAlias = "asyncpg.Connection[Any]"
PAD = "x" * 100
CONNECTIONS = 2
BATCH = 500
BESIDE = "ostinato_bench_beside"


@dataclass(frozen=True)
class Sizes:
    single: int = 200
    single_rounds: int = 60
    bulk: int = 50_000
    chunk: int = 5_000
    drain: int = 100_000
    backlog: int = 1_000_000
    history: int = 5_000_000
    pinned: int = 300_000
    rounds: int = 5
    drain_rounds: int = 15

    def tenth(self) -> Sizes:
        return Sizes(
            single_rounds=self.single_rounds // 10,
            bulk=self.bulk // 10,
            chunk=self.chunk // 10,
            drain=self.drain // 10,
            backlog=self.backlog // 10,
            history=self.history // 10,
            pinned=self.pinned // 10,
            rounds=2,
            drain_rounds=2,
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


@dataclass(frozen=True)
class Drainer:
    """A system in a database, and the connections that empty it, as long-lived as a worker's."""

    system: Ours | Limit
    conn: Connection
    workers: list[Connection]

    async def drained(self, jobs: int) -> float:
        await self.fill(jobs)
        return await self.drain(jobs)

    async def fill(self, jobs: int) -> None:
        await self.system.fill(self.conn, jobs)
        # Else what is measured also writes out what the filling left dirty: five million rows more in one case.
        await self.conn.execute("checkpoint")

    async def drain(self, jobs: int) -> float:
        work: list[Awaitable[int]] = [self.system.drain(conn, BATCH, jobs // CONNECTIONS) for conn in self.workers]
        began = time.perf_counter()
        done = sum(await asyncio.gather(*work))
        return done / (time.perf_counter() - began)


class Bench:
    def __init__(self, dsn: str, sizes: Sizes) -> None:
        self.dsn = dsn
        self.sizes = sizes
        self.ours, self.limit = Ours(), Limit()

    async def enqueue(self) -> Figure:
        """One job, one transaction, awaited one by one on one connection, both systems in short turns."""
        payloads = [{"n": n, "pad": PAD} for n in range(self.sizes.single)]
        ours, limit = [], []
        async with AsyncExitStack() as stack:
            conn = await self._connect(stack, self.dsn)
            for system in (self.limit, self.ours):
                await system.setup(conn)
                await system.enqueue(conn, payloads[:10])
            for _ in range(self.sizes.single_rounds):
                limit.append(await self._rate(len(payloads), self.limit.enqueue(conn, payloads)))
                ours.append(await self._rate(len(payloads), self.ours.enqueue(conn, payloads)))
        return Figure("single enqueue", ours, limit, 0.75)

    async def enqueue_bulk(self) -> Figure:
        """Chunks of jobs, each chunk one statement (the limit: COPY), on one connection."""
        ours, limit = [], []
        for _ in range(self.sizes.rounds):
            limit.append(await self._enqueue_bulk(self.limit))
            ours.append(await self._enqueue_bulk(self.ours))
        return Figure("bulk enqueue", ours, limit, 0.30)

    async def drain(self) -> Figure:
        """Claim and complete in batches on two connections (the limit: claim and delete)."""
        ours, limit = [], []
        async with AsyncExitStack() as stack:
            with_limit = await self._prepared(stack, self.limit, self.dsn)
            with_ours = await self._prepared(stack, self.ours, self.dsn)
            for _ in range(self.sizes.drain_rounds):
                limit.append(await with_limit.drained(self.sizes.drain))
                ours.append(await with_ours.drained(self.sizes.drain))
        return Figure("claim + complete", ours, limit, 0.40)

    async def backlog(self) -> Figure:
        """The same number of jobs, alone and at the head of a million."""
        return await self._flat("with 1M backlog", backlog=self.sizes.backlog)

    async def history(self) -> Figure:
        """The same with five million rows of history."""
        return await self._flat("with 5M history", history=self.sizes.history)

    async def pinned(self) -> Figure:
        """One long drain while another session pins xmin: its last third against its first."""
        thirds = [await self._thirds() for _ in range(self.sizes.rounds)]
        return Figure(
            "over 300k jobs, xmin pinned", [last for _, _, last in thirds], [first for first, _, _ in thirds], 0.95
        )

    async def _thirds(self) -> list[float]:
        async with AsyncExitStack() as stack:
            holder = await self._connect(stack, self.dsn)
            drainer = await self._prepared(stack, self.ours, self.dsn)
            await drainer.drained(self.sizes.drain // 10)
            await holder.execute("begin isolation level repeatable read")
            await holder.fetchval("select 1")
            await drainer.fill(self.sizes.pinned)
            rates = [await drainer.drain(self.sizes.pinned // 3) for _ in range(3)]
            if not await drainer.conn.fetchval(
                "select backend_xmin from pg_stat_activity where pid = $1", holder.get_server_pid()
            ):
                raise RuntimeError("the other session pinned nothing")
            return rates

    async def _flat(self, name: str, backlog: int = 0, history: int = 0) -> Figure:
        """Two databases of one server take turns: one with the burden, one without."""
        plain, full = [], []
        async with AsyncExitStack() as stack:
            light = await self._prepared(stack, self.ours, await self._beside(stack))
            burdened = await self._prepared(stack, self.ours, self.dsn)
            if history:
                await self.ours.fill_history(burdened.conn, history)
            if backlog:
                await self.ours.fill(burdened.conn, backlog)
            for _ in range(self.sizes.drain_rounds):
                plain.append(await light.drained(self.sizes.drain))
                full.append(await burdened.drained(self.sizes.drain))
        return Figure(name, full, plain, 0.95)

    async def _beside(self, stack: AsyncExitStack) -> str:
        """A second database on the same server, for as long as the stack lasts."""
        conn = await self._connect(stack, self.dsn)
        await conn.execute(f"drop database if exists {BESIDE}")
        await conn.execute(f"create database {BESIDE}")
        stack.push_async_callback(conn.execute, f"drop database {BESIDE} with (force)")
        return urlunsplit(urlsplit(self.dsn)._replace(path=f"/{BESIDE}"))

    async def _prepared(self, stack: AsyncExitStack, system: Ours | Limit, dsn: str) -> Drainer:
        conn = await self._connect(stack, dsn)
        await system.setup(conn)
        pool = await stack.enter_async_context(open_pool(Dsn.parse(dsn), smallest=CONNECTIONS, largest=CONNECTIONS))
        workers: list[Any] = [await stack.enter_async_context(pool.acquire()) for _ in range(CONNECTIONS)]
        return Drainer(system, conn, workers)

    async def _enqueue_bulk(self, system: Ours | Limit) -> float:
        payloads = [{"n": n, "pad": PAD} for n in range(self.sizes.chunk)]
        async with AsyncExitStack() as stack:
            conn = await self._connect(stack, self.dsn)
            await system.setup(conn)
            await system.enqueue_bulk(conn, payloads[:10])
            began = time.perf_counter()
            for _ in range(self.sizes.bulk // self.sizes.chunk):
                await system.enqueue_bulk(conn, payloads)
            return self.sizes.bulk / (time.perf_counter() - began)

    async def _rate(self, jobs: int, work: Awaitable[None]) -> float:
        began = time.perf_counter()
        await work
        return jobs / (time.perf_counter() - began)

    async def _connect(self, stack: AsyncExitStack, dsn: str) -> Connection:
        conn = await asyncpg.connect(dsn)
        stack.push_async_callback(conn.close)
        return conn


SCENARIOS = ("enqueue", "enqueue_bulk", "drain", "backlog", "history", "pinned")

"""What a transactional job does and its completion commit together, or neither does."""

import asyncio
from typing import Any

import asyncpg
import pytest

from ostinato import Context, enqueue_many, job, store
from ostinato.handler import Handler
from ostinato.lifecycle import State
from ostinato.settings import Settings
from ostinato.store import Job
from ostinato_worker import Worker

SELL = "insert into shop values ($1)"
# Says no when the transaction commits, and not before.
AT_COMMIT = """
create table customers (n int primary key);
create table sales (n int references customers deferrable initially deferred);
"""

TAKE_BACK = """
update ostinato.jobs set state = 'pending', attempt = attempt - 1, lease = null, worker_id = null
where state = 'running'
"""


@pytest.fixture
async def shop(conn: Any) -> Any:
    await conn.execute("create table shop (n int)")
    return conn


async def ran(dsn: str, conn: Any, handler: Handler) -> Job:
    made = await handler.enqueue(conn)
    await asyncio.wait_for(Worker(dsn, [handler], settings=Settings(max_attempts=2)).drain(), 20)
    return await store.get_job(conn, made.id)


async def sold(conn: Any) -> list[int]:
    return [row["n"] for row in await conn.fetch("select n from shop order by n")]


async def test_others_see_its_work_and_its_completion_at_once(dsn: str, shop: Any) -> None:
    before: list[Any] = []

    @job("sell", transaction=True)
    async def sell(ctx: Context) -> str:
        await ctx.tx.execute(SELL, 1)
        await ctx.enqueue("mail", {"n": 1}, delay="1h")
        before.append((await sold(shop), await live(shop)))
        return "sold"

    done = await ran(dsn, shop, sell)

    assert before == [([], ["sell"])]
    assert (done.state, done.attempt, done.output, await sold(shop)) == (State.COMPLETED, 1, "sold", [1])
    assert await live(shop) == ["mail"]


async def live(conn: Any) -> list[str]:
    return [row["job_type"] for row in await conn.fetch("select job_type from ostinato.jobs")]


@pytest.mark.parametrize("how", ["raises", "times out", "loses its connection", "breaks its transaction"])
async def test_of_an_attempt_that_fails_nothing_is_left_and_the_next_one_is_well(dsn: str, shop: Any, how: str) -> None:
    @job("sell", transaction=True, backoff=0, timeout="200ms" if how == "times out" else None)
    async def sell(ctx: Context) -> None:
        await ctx.tx.execute(SELL, ctx.attempt)
        if ctx.attempt == 1:
            await fail(ctx)

    async def fail(ctx: Context) -> None:
        if how == "raises":
            raise ValueError("boom")
        if how == "times out":
            await asyncio.Event().wait()
        if how == "loses its connection":
            await shop.execute("select pg_terminate_backend($1)", ctx.tx.get_server_pid())
        else:
            with pytest.raises(asyncpg.DivisionByZeroError):
                await ctx.tx.execute("select 1 / 0")

    done = await ran(dsn, shop, sell)

    codes = {"raises": "HANDLER_ERROR", "times out": "TIMEOUT"}
    assert (done.state, done.attempt) == (State.COMPLETED, 2)
    assert [each.code for each in done.attempts] == [codes.get(how, "COMMIT_FAILED")]
    assert await sold(shop) == [2]


@pytest.mark.parametrize("prepared", [True, False])
async def test_what_was_done_under_a_claim_that_is_gone_never_happened(dsn: str, shop: Any, prepared: bool) -> None:
    calls: list[int] = []

    @job("sell", transaction=True)
    async def sell(ctx: Context) -> None:
        calls.append(len(calls))
        await ctx.tx.execute(SELL, len(calls))
        if len(calls) == 1:
            await shop.execute(TAKE_BACK)

    done = await ran(dsn if prepared else f"{dsn}&pgbouncer=true", shop, sell)

    assert (done.state, done.attempt, len(calls)) == (State.COMPLETED, 1, 2)
    assert await sold(shop) == [2]


async def test_what_a_handler_sets_for_its_transaction_is_not_the_next_ones(dsn: str, shop: Any) -> None:
    seen: list[str] = []

    @job("careful", transaction=True)
    async def careful(ctx: Context) -> None:
        await ctx.tx.execute("set transaction isolation level serializable")

    @job("plain", transaction=True)
    async def plain(ctx: Context) -> None:
        seen.append(await ctx.tx.fetchval("show transaction_isolation"))

    await enqueue_many(shop, [each.new() for _ in range(10) for each in (careful, plain)])
    await asyncio.wait_for(Worker(dsn, [careful, plain], concurrency=1).drain(), 20)

    assert seen == ["read committed"] * 10


async def test_what_goes_on_after_a_handler_has_no_part_in_the_next_jobs_transaction(dsn: str, shop: Any) -> None:
    left: list[Any] = []
    refused: list[type[BaseException]] = []

    @job("sell", transaction=True)
    async def sell(ctx: Context) -> None:
        for stale in left:
            with pytest.raises(asyncpg.InterfaceError) as raised:
                await stale(SELL, 7)
            refused.append(raised.type)
        left[:] = [ctx.tx.execute, (await ctx.tx.prepare("select $1::text, $2::int")).fetch]
        await ctx.tx.execute(SELL, 1)

    await enqueue_many(shop, [sell.new() for _ in range(5)])
    counts = await asyncio.wait_for(Worker(dsn, [sell], concurrency=1).drain(), 20)

    assert (counts, len(refused)) == ({"completed": 5}, 8)
    assert await sold(shop) == [1] * 5


async def test_an_output_that_is_no_json_undoes_the_work_and_is_not_tried_again(dsn: str, shop: Any) -> None:
    @job("sell", transaction=True)
    async def sell(ctx: Context) -> object:
        await ctx.tx.execute(SELL, 1)
        return object()

    done = await ran(dsn, shop, sell)

    assert (done.state, done.error_code) == (State.DEAD_LETTERED, "OUTPUT_INVALID")
    assert await sold(shop) == []


async def test_a_commit_that_fails_is_an_attempt_that_failed(dsn: str, shop: Any) -> None:
    await shop.execute(AT_COMMIT)

    @job("sell", transaction=True, backoff="1h")
    async def sell(ctx: Context) -> None:
        await ctx.tx.execute(SELL, 1)
        await ctx.tx.execute("insert into sales values (7)")

    done = await ran(dsn, shop, sell)

    assert (done.state, done.attempt, done.error_code) == (State.RETRYING, 1, "COMMIT_FAILED")
    assert "customers" in (done.error_message or "")
    assert await sold(shop) == []

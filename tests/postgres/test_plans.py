"""The hot statements keep their plans with a million live jobs and five million rows of history in place."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import psycopg
import pytest

from ostinato.store.statements import Statement, load
from tests.postgres.actors import hire
from tests.postgres.conftest import TEMPLATE, Server, database

LIVE, HISTORY = 1_000_000, 5_000_000

# As a busy database looks: many types and queues, some failed, some future, a day's worth running. Beside each other.
FILL_LIVE = f"""
alter table ostinato.jobs disable trigger user;
insert into ostinato.jobs (job_type, queue, priority, run_at, payload, state, lease, worker_id, started_at, error_code)
select 'type' || n % 50, case when n % 10 = 0 then 'other' else 'default' end, n % 3,
    now() + (n - {LIVE} / 2) * interval '1 ms', '{{}}',
    case when n % 200 = 0 then 'running' when n % 20 = 1 then 'retrying' else 'pending' end,
    case when n % 200 = 0 then n end, case when n % 200 = 0 then ostinato.first_id(to_timestamp(n % 40)) end,
    case when n % 200 = 0 then now() end, case when n % 20 = 1 then 'CODE' || n % 7 end
from generate_series(1, {LIVE}) as n;
alter table ostinato.jobs enable trigger user;
"""
FILL_HISTORY = """
insert into ostinato.job_history (id, job_type, payload, state, attempt, lease, worker_id, started_at, finished_at)
select ostinato.uuidv7(), 'type' || n % 50, '{{}}', 'completed', 1, n, ostinato.first_id(to_timestamp(n % 40)), now(),
    date_trunc('day', now(), 'UTC') + (n % 5 - 1) * interval '1 day'
from generate_series({first}, {last}) as n
"""
FILL_DEAD_LETTERS = """
insert into ostinato.dead_letters (id, job_type, payload, state, finished_at, error_code)
select ostinato.uuidv7(), 'type' || n % 50, '{}', 'dead_lettered', now(), 'CODE' || n % 7
from generate_series(1, 50000) as n
"""
FILL = [
    FILL_LIVE,
    FILL_DEAD_LETTERS,
    FILL_HISTORY.format(first=1, last=HISTORY // 2),
    FILL_HISTORY.format(first=HISTORY // 2 + 1, last=HISTORY),
]
TIDY = [f"vacuum analyze ostinato.{table}" for table in ("jobs", "dead_letters", "job_history")]


@pytest.fixture(scope="module")
def big(server: Server) -> Iterator[str]:
    for dsn in database(server, TEMPLATE):
        asyncio.run(fill(dsn))
        yield dsn


async def fill(dsn: str) -> None:
    await asyncio.gather(*(done(dsn, statements) for statements in FILL))
    await asyncio.gather(*(done(dsn, statement) for statement in TIDY))
    conn = await asyncpg.connect(dsn)
    await hire(conn, "type1")
    await conn.close()


async def done(dsn: str, statements: str) -> None:
    conn = await asyncpg.connect(dsn)
    await conn.execute(statements)
    await conn.close()


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def walks(plan: dict[str, Any]) -> list[str]:
    """The tables that the plan reads from end to end."""
    return [node["Relation Name"] for node in nodes(plan) if node["Node Type"] == "Seq Scan"]


SMALL = {"workers", "limits", "slots", "job_types"}


@pytest.mark.parametrize("server", ["wheel-18"], indirect=True)
@pytest.mark.parametrize("generic", [False, True])
async def test_hot_statements_read_no_big_table_from_end_to_end(big: str, generic: bool) -> None:
    conn = await asyncpg.connect(big)
    empty = {row[0] for row in await conn.fetch("select relname from pg_class where relkind = 'r' and reltuples <= 0")}

    walked = {}
    for name, statement, given in await hot(conn):
        plan = explain_generic(big, statement) if generic else await explain(conn, statement, given)
        walked[name] = set(walks(plan)) - SMALL - empty
    await conn.close()

    assert {name: tables for name, tables in walked.items() if tables} == {}


async def hot(conn: Any) -> list[tuple[str, Statement, dict[str, Any]]]:
    worker_id = await conn.fetchval("select id from ostinato.workers")
    rows = await conn.fetch("select id, lease from ostinato.jobs where state = 'running' limit 500")
    ids, leases = [row["id"] for row in rows], [row["lease"] for row in rows]
    lanes: dict[str, Any] = {
        "worker_id": worker_id,
        "alone": True,
        "namespace": "default",
        "types": ["type1", "type2"],
        "limit": 500,
        "queues": ["default", "other"] * 3,
        "priorities": [2, 2, 1, 1, 0, 0],
        "marks": [datetime(1970, 1, 1, tzinfo=UTC)] * 6,
        "mark_ids": [UUID(int=0)] * 6,
        "solos": [None] * 6,
        "limited": ["type3"],
    }
    fence = {"id": ids[0], "lease": leases[0]}
    why = {"code": "X", "message": "boom"}
    moves, jobs, workers = load("moves"), load("jobs"), load("workers")
    calls: list[tuple[Statement, dict[str, Any]]] = [
        (moves["claim"], lanes),
        (moves["claim_limited"], lanes),
        (moves["complete"], {"ids": ids, "leases": leases, "outputs": []}),
        (moves["complete_one"], fence | {"output": None}),
        (moves["release"], {"ids": ids, "leases": leases}),
        (moves["retry"], fence | why | {"delay": timedelta(seconds=1)}),
        (moves["dead_letter"], fence | why),
        (moves["cancel"], {"id": ids[0], "reason": None}),
        (moves["recover"], {"max_attempts": 5, "poison": 3, "limit": 10_000, "message": "boom"}),
        (moves["bury_unserved"], {"grace": timedelta(hours=1), "limit": 10_000}),
        (moves["redrive"], {"ids": ids, "run_at": None, "delay": None, "reset": False}),
        (jobs["progress"], fence | {"progress": "1"}),
        (jobs["get_job"], {"id": ids[0]}),
        (jobs["find_lanes"], {"namespace": "default", "queues": ["default", "other"]}),
        (jobs["next_run_at"], {"namespace": "default", "queues": ["default"], "priorities": [0]}),
        (workers["renew_worker"], {"id": worker_id, "lease": timedelta(seconds=1)}),
    ]
    listing = jobs.choices["list_jobs"]
    for given in ({}, {"namespace": "default", "job_type": "type1"}, {"before": uuid4()}, {"states": ["running"]}):
        calls.append((listing.given(frozenset(given)), given | {"limit": 50}))
    return [(f"{statement.name} {sorted(given)}", statement, given) for statement, given in calls]


async def explain(conn: Any, statement: Statement, given: dict[str, Any]) -> dict[str, Any]:
    arguments = [given[parameter] for parameter in statement.parameters]
    plan = json.loads(await conn.fetchval(f"explain (format json) {statement.text}", *arguments))
    return dict(plan[0]["Plan"])


def explain_generic(dsn: str, statement: Statement) -> dict[str, Any]:
    """The plan that a prepared statement settles on: made without knowing the values."""
    with psycopg.connect(dsn) as conn:
        result = conn.pgconn.exec_(f"explain (generic_plan, format json) {statement.text}".encode())
        assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
        return dict(json.loads(result.get_value(0, 0) or b"")[0]["Plan"])

"""`ostinato doctor` and PgBouncer, against real servers."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from ostinato import enqueue, store
from ostinato.dsn import Dsn
from ostinato.errors import Unreachable
from ostinato.postgres import connect, open_pool
from ostinato.store import Lanes, NewWorker
from ostinato.store import doctor as facts
from tests.cli.command import Done, enqueued, ostinato
from tests.postgres.conftest import Server, on
from tests.postgres.pgbouncer import bouncer, needs_pgbouncer

CHECKS = [
    *("connection", "version", "clock", "pooler", "notifications", "autovacuum", "horizon"),
    *("schema", "partitions", "queues", "recovery"),
]


def examined(dsn: str, **variables: str) -> tuple[Done, dict[str, dict[str, Any]]]:
    done = ostinato("doctor", "-o", "json", dsn=dsn, **variables)
    return done, {finding["check"]: finding for finding in done.json}


def test_a_fit_database_passes_every_check(dsn: str) -> None:
    done, found = examined(dsn)

    assert done.code == 0
    assert list(found) == CHECKS
    assert {finding["verdict"] for finding in found.values()} == {"ok"}
    assert all(finding["advice"] is None for finding in found.values())
    assert found["pooler"]["saw"] == "none: connected to the server itself"


def test_people_get_a_line_for_each_check_and_what_to_do_below(empty_dsn: str) -> None:
    done = ostinato("doctor", dsn=empty_dsn)

    assert done.code == 1
    assert done.out.splitlines()[-2].split()[:2] == ["fail", "schema"]
    assert done.out.splitlines()[-1].strip() == "→ run `ostinato migrate`"


def test_an_unreachable_database_is_code_3_and_the_only_finding() -> None:
    done, found = examined("postgresql://me:secret@127.0.0.1:1/db")

    assert (done.code, list(found)) == (3, ["connection"])
    assert "secret" not in done.out


def test_a_changed_migration_fails(dsn: str) -> None:
    on(dsn, lambda conn: conn.execute("update ostinato.schema_migrations set checksum = 'x' where version = 2"))

    done, found = examined(dsn)

    assert done.code == 1
    assert found["schema"]["verdict"] == "fail"
    assert "0002_workers.sql was changed" in found["schema"]["saw"]


def test_a_table_without_autovacuum_fails(dsn: str) -> None:
    on(dsn, lambda conn: conn.execute("alter table ostinato.jobs set (autovacuum_enabled = off)"))

    done, found = examined(dsn)

    assert done.code == 1
    assert found["autovacuum"]["saw"] == "off for ostinato.jobs"


def test_missing_partitions_fail(dsn: str) -> None:
    tomorrow = "to_char((now() at time zone 'UTC')::date + 1, 'YYYYMMDD')"
    drop = f"do $$ begin execute 'drop table ostinato.job_history_' || {tomorrow}; end $$"
    on(dsn, lambda conn: conn.execute(drop))

    done, found = examined(dsn)

    assert done.code == 1
    assert found["partitions"]["saw"] == "history has no partition for tomorrow"


def test_jobs_that_nobody_serves_are_a_warning(dsn: str) -> None:
    enqueued(dsn, "--queue", "slow")
    on(dsn, lambda conn: conn.execute("update ostinato.jobs set run_at = now() - interval '2 hours'"))

    done, found = examined(dsn)

    assert done.code == 0
    assert found["queues"]["verdict"] == "warn"
    assert found["queues"]["saw"] == "1 ready in default/slow, the oldest for 2h; no live worker serves it"


def test_jobs_of_a_dead_worker_are_a_warning(dsn: str) -> None:
    enqueued(dsn)

    async def die(conn: Any) -> None:
        worker = await store.register_worker(
            conn, NewWorker(namespace="default", queues=["default"]), lease=timedelta(minutes=1)
        )
        await store.claim(conn, worker, Lanes("default", ["default"]), types=["send_email"], limit=1)
        await store.retire_workers(conn, [worker])

    on(dsn, die)

    assert examined(dsn)[1]["recovery"]["saw"] == "1 jobs are still held by workers that ended"


def test_a_silent_worker_is_a_warning(dsn: str) -> None:
    silent = (
        "insert into ostinato.workers (namespace, queues, lease_expires_at) "
        "values ('default', '{default}', now() - interval '1 hour')"
    )
    on(dsn, lambda conn: conn.execute(silent))

    assert "1 workers lost their lease, the first 1h ago" in examined(dsn)[1]["recovery"]["saw"]


async def test_a_transaction_that_pins_the_horizon_is_seen(dsn: str) -> None:
    pinning, looking = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    await pinning.execute("set application_name = 'forgotten'; begin isolation level repeatable read; select 1")

    [pin] = await facts.look_at_horizon(looking)

    await pinning.close()
    await looking.close()
    assert (pin.kind, pin.query) == (
        "transaction",
        "set application_name = 'forgotten'; begin isolation level repeatable read; select 1",
    )
    assert pin.who == "forgotten, postgres, idle in transaction"
    assert pin.lasts is not None


async def test_a_prepared_transaction_that_pins_the_horizon_is_seen(dsn: str) -> None:
    conn = await asyncpg.connect(dsn)
    if await conn.fetchval("show max_prepared_transactions") == "0":
        await conn.close()
        pytest.skip("this server has max_prepared_transactions = 0")
    await conn.execute("begin; create table held (); prepare transaction 'left over'")

    [pin] = await facts.look_at_horizon(conn)

    await conn.execute("rollback prepared 'left over'")
    await conn.close()
    assert (pin.kind, pin.name, pin.who) == ("prepared transaction", "left over", "postgres")


async def test_a_user_who_may_not_see_others_transactions_is_told(dsn: str) -> None:
    conn = await asyncpg.connect(dsn)
    await conn.execute("do $$ begin create role blind login; exception when duplicate_object then end $$")
    await conn.close()

    blind = await asyncpg.connect(dsn.replace("postgres@", "blind@"))
    server = await facts.look_at_server(blind)
    await blind.close()

    assert (server.user, server.sees_all) == ("blind", False)


async def test_a_user_without_rights_gets_the_other_findings_all_the_same(dsn: str) -> None:
    guest = "do $$ begin create role guest login; exception when duplicate_object then end $$"
    conn = await asyncpg.connect(dsn)
    await conn.execute(guest)

    without_schema, found = await asyncio.to_thread(examined, dsn.replace("postgres@", "guest@"))
    await conn.execute("grant usage on schema ostinato to guest")
    await conn.execute("grant select on ostinato.schema_migrations to guest")
    without_tables, more = await asyncio.to_thread(examined, dsn.replace("postgres@", "guest@"))
    await conn.close()

    assert (without_schema.code, without_tables.code) == (1, 1)
    assert list(found)[-1] == "permissions"
    assert "grant" in found["permissions"]["advice"]
    assert list(more)[-2:] == ["schema", "permissions"]
    assert "permission denied for" in more["permissions"]["saw"]


def test_a_database_where_transactions_are_read_only_fails(dsn: str) -> None:
    done, found = examined(f"{dsn}&options=-cdefault_transaction_read_only%3Don")

    assert done.code == 1
    assert "read-only" in found["version"]["saw"]


def test_a_wrong_listen_dsn_fails(dsn: str) -> None:
    done, found = examined(dsn, OSTINATO_LISTEN_DSN="postgresql://me:secret@127.0.0.1:1/db")

    assert done.code == 1
    assert found["notifications"]["verdict"] == "fail"
    assert "OSTINATO_LISTEN_DSN" in found["notifications"]["advice"]


# PgBouncer


@pytest.fixture
def transaction_mode(server: Server, dsn: str) -> Iterator[str]:
    """The test's database, through PgBouncer in transaction mode."""
    with bouncer(server) as running:
        yield running.dsn_for(dsn)


@pytest.fixture
def tolerant(server: Server, dsn: str) -> Iterator[str]:
    """The same, by a PgBouncer that does not give itself away by refusing a parameter."""
    with bouncer(server, ignore_startup_parameters="jit,default_transaction_isolation") as running:
        yield running.dsn_for(dsn)


@pytest.fixture
def session_mode(server: Server, dsn: str) -> Iterator[str]:
    with bouncer(server, pool_mode="session", default_pool_size="9") as running:
        yield running.dsn_for(dsn)


@needs_pgbouncer
def test_behind_pgbouncer_all_commands_work_without_being_told(transaction_mode: str) -> None:
    job_id = enqueued(transaction_mode, "--dedup-key", "k")

    codes = [
        ostinato(*command, dsn=transaction_mode).code
        for command in (
            ["migrate"],
            ["jobs", "show", job_id],
            ["queues"],
            ["jobs", "cancel", job_id],
            ["workers", "list"],
        )
    ]

    assert codes == [0, 0, 0, 0, 0]
    assert ostinato("demo", "--dsn", transaction_mode).code == 0


@needs_pgbouncer
async def test_behind_pgbouncer_many_connections_share_few_servers(transaction_mode: str) -> None:
    async with open_pool(Dsn.parse(transaction_mode), smallest=8, largest=8) as pool:

        async def work(number: int) -> int:
            made = await enqueue(pool, "send_email", {"number": number})
            job = await store.get_job(pool, made.id)
            return int(job.payload["number"])

        numbers = await asyncio.gather(*map(work, range(200)))

    assert numbers == list(range(200))


@needs_pgbouncer
async def test_a_pgbouncer_that_nobody_told_of_is_named_when_it_breaks_something(tolerant: str) -> None:
    async def work() -> None:
        async with connect(Dsn.parse(tolerant)) as conn:
            for _ in range(50):
                await store.list_jobs(conn)
                await store.list_workers(conn)

    results = await asyncio.gather(*(work() for _ in range(8)), return_exceptions=True)

    failures = [result for result in results if result is not None]
    assert failures
    assert all(isinstance(failure, Unreachable) and "pgbouncer=true" in str(failure) for failure in failures)


@needs_pgbouncer
async def test_the_dsn_can_say_that_it_leads_to_pgbouncer(tolerant: str) -> None:
    async def work() -> None:
        async with connect(Dsn.parse(f"{tolerant}&pgbouncer=true")) as conn:
            for _ in range(50):
                await store.list_jobs(conn)

    assert await asyncio.gather(*(work() for _ in range(8))) == [None] * 8


@needs_pgbouncer
def test_doctor_finds_transaction_mode_and_asks_for_a_way_around_it(transaction_mode: str, dsn: str) -> None:
    _, found = examined(transaction_mode)
    _, with_listen_dsn = examined(transaction_mode, OSTINATO_LISTEN_DSN=dsn)

    assert found["pooler"]["verdict"] == "warn"
    assert "OSTINATO_LISTEN_DSN" in found["pooler"]["advice"]
    assert found["notifications"]["verdict"] == "warn"
    assert with_listen_dsn["notifications"]["verdict"] == "ok"


@needs_pgbouncer
def test_doctor_fails_if_nobody_said_that_there_is_pgbouncer(tolerant: str) -> None:
    done, found = examined(tolerant)
    told, _ = examined(tolerant, OSTINATO_PGBOUNCER="true")

    assert (done.code, told.code) == (1, 0)
    assert "pgbouncer=true" in found["pooler"]["advice"]


@needs_pgbouncer
def test_doctor_accepts_session_mode(session_mode: str) -> None:
    _, found = examined(session_mode)

    assert found["pooler"]["verdict"] == "ok"
    assert "session mode" in found["pooler"]["saw"]
    assert found["notifications"]["verdict"] == "ok"

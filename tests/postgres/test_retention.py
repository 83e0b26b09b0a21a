"""Partitions ahead of time, and what is old enough to go."""

from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from ostinato import enqueue, store
from tests.postgres.actors import hire

DAY = timedelta(days=1)


async def parts(conn: Any) -> list[str]:
    rows = await conn.fetch(
        "select relname from pg_inherits join pg_class on oid = inhrelid "
        "where inhparent = 'ostinato.job_history'::regclass order by relname"
    )
    return [row["relname"] for row in rows]


async def test_partitions_are_made_for_yesterday_and_two_weeks_ahead_and_making_them_again_is_harmless(
    conn: Any,
) -> None:
    days = await conn.fetch(
        "select to_char((now() at time zone 'UTC')::date + n, 'YYYYMMDD') as day from generate_series(-1, 14) as n"
    )

    assert await parts(conn) == [f"job_history_{row['day']}" for row in days]
    assert await store.make_partitions(conn) == 0
    assert await store.make_partitions(conn, days=16) == 2


async def test_days_that_ended_longer_ago_than_is_kept_are_dropped_with_their_jobs(conn: Any) -> None:
    actor = await hire(conn)
    await enqueue(conn, "work")
    job = await actor.claim_one()
    await store.complete(conn, [job])
    await conn.execute(
        """
        create table ostinato.job_history_20200101 (like ostinato.job_history including defaults including constraints);
        alter table ostinato.job_history attach partition ostinato.job_history_20200101
            for values from ('2020-01-01 00:00+00') to ('2020-01-02 00:00+00');
        insert into ostinato.job_history (id, job_type, state, lease, started_at, finished_at)
            values (gen_random_uuid(), 'work', 'completed', 1, now(), '2020-01-01 12:00+00');
        """
    )

    dropped = await store.prune_history(conn, keep=30 * DAY)

    assert dropped == ["job_history_20200101"]
    assert [found.id for found in await store.list_jobs(conn)] == [job.id]
    assert await store.prune_history(conn, keep=30 * DAY) == []


async def test_a_prune_that_was_interrupted_is_finished_by_the_next(conn: Any) -> None:
    await conn.execute("create table ostinato.job_history_20200101 (like ostinato.job_history)")

    await store.prune_history(conn, keep=30 * DAY)

    assert await conn.fetchval("select to_regclass('ostinato.job_history_20200101')") is None


async def test_expired_idempotency_keys_are_forgotten_in_batches(conn: Any) -> None:
    for n in range(5):
        await enqueue(conn, "work", idempotency_key=str(n))
    await conn.execute("update ostinato.idempotency_keys set expires_at = now() where key <> '4'")

    assert await store.prune_idempotency_keys(conn, limit=3) == 3
    assert await store.prune_idempotency_keys(conn, limit=3) == 1
    assert await conn.fetchval("select key from ostinato.idempotency_keys") == "4"


async def test_workers_that_ended_are_forgotten_unless_something_of_theirs_still_has_to_be_recovered(conn: Any) -> None:
    idle, busy, alive = await hire(conn), await hire(conn), await hire(conn)
    await enqueue(conn, "work")
    await busy.claim_one()
    await store.retire_workers(conn, [idle.id, busy.id])
    await conn.execute("update ostinato.workers set ended_at = now() - interval '2 days' where ended_at is not null")

    assert await store.prune_workers(conn, keep=3 * DAY) == 0
    assert await store.prune_workers(conn, keep=DAY) == 1

    left = {row["id"] for row in await conn.fetch("select id from ostinato.workers")}
    assert left == {busy.id, alive.id}


async def test_dead_letters_go_only_when_asked_and_only_old_ones(conn: Any) -> None:
    actor = await hire(conn)
    for _ in range(2):
        await enqueue(conn, "work")
        await store.dead_letter(conn, (await actor.claim_one()).held, code="X", message="boom")
    await conn.execute(
        "update ostinato.dead_letters set finished_at = now() - interval '2 days' "
        "where id = (select id from ostinato.dead_letters order by id limit 1)"
    )

    assert await store.prune_dead_letters(conn, keep=DAY) == 1
    assert await conn.fetchval("select count(*) from ostinato.dead_letters") == 1


@pytest.mark.parametrize("style", ["ISO, MDY", "SQL, DMY", "Postgres, DMY", "German"])
async def test_days_are_of_utc_whatever_the_sessions_zone_and_style(conn: Any, style: str) -> None:
    await conn.execute(f"set timezone = 'Asia/Kolkata'; set datestyle = '{style}'")

    await store.make_partitions(conn, days=20)

    await conn.execute("set timezone = 'UTC'; set datestyle = 'ISO, MDY'")
    bounds = await conn.fetch(
        "select pg_get_expr(relpartbound, oid) as bound from pg_class where relname ~ '^job_history_[0-9]{8}$'"
    )
    assert len(bounds) == 22
    assert all(row["bound"].count(" 00:00:00+00") == 2 for row in bounds)


async def test_a_detach_that_was_cut_off_is_ended_first_by_the_next_prune(connect: Any) -> None:
    conn, reader = await connect(), await connect()
    for day in ("20200101", "20200102"):
        await conn.execute(
            f"create table ostinato.job_history_{day} (like ostinato.job_history including constraints);"
            f"alter table ostinato.job_history attach partition ostinato.job_history_{day} "
            f"for values from ('{day} 00:00+00') to ('{day} 23:00+00')"
        )
    transaction = reader.transaction()
    await transaction.start()
    await reader.fetch("select * from ostinato.job_history")
    await conn.execute("set statement_timeout = '500ms'")
    with pytest.raises(asyncpg.QueryCanceledError):
        await conn.execute(
            "alter table ostinato.job_history detach partition ostinato.job_history_20200102 concurrently"
        )
    await conn.execute("set statement_timeout = 0")
    await transaction.rollback()

    dropped = await store.prune_history(conn, keep=30 * DAY)

    assert dropped == ["job_history_20200102", "job_history_20200101"]


async def test_a_partition_of_another_name_is_left_alone(conn: Any) -> None:
    await conn.execute(
        "create table ostinato.job_history_archive partition of ostinato.job_history "
        "for values from ('2019-01-01 00:00+00') to ('2020-01-01 00:00+00')"
    )

    assert await store.prune_history(conn, keep=30 * DAY) == []


async def test_days_that_are_over_have_an_index_by_type_and_today_has_none(conn: Any) -> None:
    await conn.execute(
        "create table ostinato.job_history_20200101 partition of ostinato.job_history "
        "for values from ('2020-01-01 00:00+00') to ('2020-01-02 00:00+00')"
    )

    await store.make_partitions(conn)

    indexed = await conn.fetch("select relname from pg_class where relname ~ '^job_history_.*_type$' order by relname")
    yesterday = (await parts(conn))[1]
    assert [row["relname"] for row in indexed] == ["job_history_20200101_type", f"{yesterday}_type"]

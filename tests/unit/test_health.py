"""From facts to findings."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ostinato import health
from ostinato.health import Finding
from ostinato.store.doctor import Line, Lost, Pin, Pooler, Server, Table

SERVER = Server(
    version=150004,
    autovacuum=True,
    track_counts=True,
    jit=False,
    user="shop",
    standby=False,
    read_only=False,
    sees_all=True,
)
JOBS = Table("jobs", live=1000, dead=10, vacuumed_at=None, excluded=False)
PIN = Pin("transaction", "4711", transactions=5, lasts=timedelta(minutes=6), who="psql, eve", query="select 1")
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_advice_is_given_when_and_only_when_something_is_wrong() -> None:
    fine, bad = health.judge_version(SERVER), health.judge_version(replace(SERVER, version=130009))

    assert fine.advice is None
    assert bad.advice


@pytest.mark.parametrize(
    ("version", "verdict"), [(130009, "fail"), (140000, "ok"), (150004, "ok"), (180004, "ok"), (190000, "warn")]
)
def test_postgres_14_to_18_is_supported(version: int, verdict: str) -> None:
    assert health.judge_version(replace(SERVER, version=version)).verdict == verdict


def test_a_standby_fails() -> None:
    assert health.judge_version(replace(SERVER, standby=True)).verdict == "fail"


def test_transactions_that_are_read_only_fail() -> None:
    finding = health.judge_version(replace(SERVER, read_only=True))

    assert finding.verdict == "fail"
    assert finding.advice is not None
    assert "default_transaction_read_only" in finding.advice


@pytest.mark.parametrize(
    ("database", "verdict"),
    [(NOON, "ok"), (NOON + 3 * SECOND, "ok"), (NOON + 4 * SECOND, "warn"), (NOON - 3 * SECOND, "warn")],
)
def test_a_slow_answer_is_no_skew_but_two_seconds_beyond_it_are(database: datetime, verdict: str) -> None:
    assert health.judge_clock(NOON, database, NOON + SECOND).verdict == verdict


def test_notifications_that_do_not_arrive_are_a_warning() -> None:
    assert health.judge_notifications(None, own_dsn=False).verdict == "warn"
    assert health.judge_notifications(0.001, own_dsn=True).saw == "one arrived through OSTINATO_LISTEN_DSN after 1 ms"


@pytest.mark.parametrize(
    ("between", "shared", "flagged", "listen", "jit", "verdict"),
    [
        (False, False, False, False, True, "ok"),
        (True, False, False, False, True, "ok"),
        (True, True, False, True, False, "fail"),
        (True, True, True, False, False, "warn"),
        (True, True, True, True, True, "warn"),
        (True, True, True, True, False, "ok"),
    ],
)
def test_transaction_mode_must_be_known_and_needs_a_way_around(
    between: bool, shared: bool, flagged: bool, listen: bool, jit: bool, verdict: str
) -> None:
    server = replace(SERVER, jit=jit)

    found = health.judge_pooler(Pooler(between, shared), server, flagged=flagged, own_listen_dsn=listen)

    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("server", "table", "verdict"),
    [
        (SERVER, JOBS, "ok"),
        (replace(SERVER, autovacuum=False), JOBS, "fail"),
        (replace(SERVER, track_counts=False), JOBS, "fail"),
        (SERVER, replace(JOBS, excluded=True), "fail"),
        (SERVER, replace(JOBS, dead=50_001), "warn"),
        (SERVER, replace(JOBS, dead=50_001, live=30_000), "ok"),
    ],
)
def test_autovacuum_must_be_on_and_keep_up(server: Server, table: Table, verdict: str) -> None:
    assert health.judge_autovacuum(server, [table]).verdict == verdict


@pytest.mark.parametrize(
    ("pin", "advice"),
    [
        (PIN, "pg_terminate_backend(4711)"),
        (replace(PIN, kind="prepared transaction", name="x"), "rollback prepared 'x'"),
        (
            replace(PIN, kind="replication slot", name="s", lasts=None, transactions=2_000_000),
            "pg_drop_replication_slot('s')",
        ),
    ],
)
def test_what_pins_the_horizon_is_named_with_the_way_to_end_it(pin: Pin, advice: str) -> None:
    found = health.judge_horizon([pin], SERVER)

    assert found.verdict == "warn"
    assert pin.name in found.saw
    assert advice in (found.advice or "")


def test_short_transactions_do_not_matter_unless_long_ones_may_be_hidden() -> None:
    short = replace(PIN, lasts=timedelta(minutes=4))

    assert health.judge_horizon([short], SERVER).verdict == "ok"
    assert "pg_read_all_stats" in (health.judge_horizon([short], replace(SERVER, sees_all=False)).advice or "")


@pytest.mark.parametrize(("days", "verdict"), [(0, "fail"), (2, "warn"), (3, "ok"), (14, "ok")])
def test_history_needs_partitions_ahead(days: int, verdict: str) -> None:
    assert health.judge_partitions(days).verdict == verdict


def test_pending_migrations_fail() -> None:
    assert health.judge_schema([], 3).verdict == "ok"
    assert health.judge_schema(["0003_enqueue.sql"], 3) == Finding(
        "schema", health.Verdict.FAIL, "not applied yet: 0003_enqueue.sql", "run `ostinato migrate`"
    )


def test_a_queue_that_nobody_serves_comes_before_one_that_is_slow() -> None:
    slow = Line("shop", "slow", ready=9, oldest=timedelta(hours=2), workers=3)
    orphan = Line("shop", "orphan", ready=1, oldest=timedelta(minutes=6), workers=0)
    young = Line("shop", "young", ready=1, oldest=timedelta(minutes=4), workers=0)

    assert "shop/orphan" in health.judge_queues([slow, orphan, young]).saw
    assert "3 workers serve it" in health.judge_queues([slow, young]).saw
    assert health.judge_queues([young]).verdict == "ok"


@pytest.mark.parametrize(
    ("lost", "verdict"),
    [
        (Lost(0, None, 0), "ok"),
        (Lost(0, -SECOND, 0), "ok"),
        (Lost(1, 5 * SECOND, 0), "ok"),
        (Lost(1, 11 * SECOND, 0), "warn"),
        (Lost(0, None, 1), "warn"),
    ],
)
def test_dead_workers_must_be_found_within_seconds(lost: Lost, verdict: str) -> None:
    assert health.judge_lost(lost).verdict == verdict

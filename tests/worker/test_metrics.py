"""What Prometheus reads."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from uuid import uuid4

from prometheus_client.parser import text_string_to_metric_families

from ostinato.failures import Code
from ostinato.store import Claimed
from ostinato_worker.condition import Condition
from ostinato_worker.metrics import Metrics
from ostinato_worker.tally import MOST_CODES, Tally
from tests.worker.process import get, put, until, worker

COMPLETED = "ostinato_attempts_finished_total{code=,job_type=greet,outcome=completed}"
BURIED = "ostinato_attempts_finished_total{code=REFUSED,job_type=refuse,outcome=dead_lettered}"


def claimed(job_type: str = "greet", run_at: datetime | None = None) -> Claimed:
    due = run_at or datetime.now(UTC)
    return Claimed(uuid4(), 1, "default", job_type, 1, "{}", 0, due, 1, None, None, None, None, None)


def samples(page: str) -> dict[str, float]:
    families = text_string_to_metric_families(page)
    return {
        f"{sample.name}{{{','.join(f'{k}={v}' for k, v in sorted(sample.labels.items()))}}}": sample.value
        for family in families
        for sample in family.samples
    }


def shown(tally: Tally) -> dict[str, float]:
    return samples(Metrics(tally, lambda: Condition(slots=8, busy=2, ahead=3)).page().decode())


def test_a_worker_shows_what_it_did(dsn: str, tmp_path: Path) -> None:
    for _ in range(3):
        put(dsn, "greet", {"name": "Ada"})
    put(dsn, "refuse")
    put(dsn, "greet", {"name": "the last"}, priority=-1)
    with worker(tmp_path, dsn, "--jobs", "shop", "--health-port", "0") as process:
        port = int(process.until(r"on port (\d+)")[1])
        process.until("the last")

        def look() -> dict[str, float] | None:
            seen = samples(get(port, "/metrics")[1])
            return seen if seen.get(BURIED) == 1 and seen[COMPLETED] == 4 else None

        found = until(look)

    assert found["ostinato_jobs_claimed_total{job_type=greet}"] == 4
    assert found["ostinato_jobs_claimed_total{job_type=refuse}"] == 1
    assert found["ostinato_attempt_duration_seconds_count{job_type=greet}"] == 4
    assert found["ostinato_queue_latency_seconds_count{job_type=greet}"] == 4
    assert found["ostinato_worker_slots{}"] == 8
    assert found["ostinato_worker_slots_busy{}"] == 0
    assert found["ostinato_lease_renewals_total{}"] >= 1
    assert found["ostinato_lease_renewal_failures_total{}"] == 0
    assert "process_resident_memory_bytes{}" in found


def test_types_that_did_nothing_yet_are_shown_as_zero() -> None:
    tally = Tally()

    tally.know(["greet"])

    found = shown(tally)
    assert found["ostinato_jobs_claimed_total{job_type=greet}"] == 0
    assert found[COMPLETED] == 0
    assert found["ostinato_attempt_duration_seconds_bucket{job_type=greet,le=+Inf}"] == 0


def test_latency_is_from_when_a_job_was_due_by_the_databases_clock() -> None:
    tally = Tally()
    database = datetime.now(UTC) + timedelta(minutes=5)
    tally.clock(database)

    jobs = [claimed(run_at=database - timedelta(seconds=2)), claimed(run_at=database + timedelta(seconds=2))]
    tally.claimed(jobs)
    for job in jobs:
        tally.began(job, perf_counter())

    found = shown(tally)
    assert found["ostinato_queue_latency_seconds_bucket{job_type=greet,le=0.005}"] == 1
    assert found["ostinato_queue_latency_seconds_bucket{job_type=greet,le=1.0}"] == 1
    assert found["ostinato_queue_latency_seconds_bucket{job_type=greet,le=2.5}"] == 2
    assert found["ostinato_queue_latency_seconds_sum{job_type=greet}"] < 2.1


def test_the_time_is_the_databases() -> None:
    tally = Tally()
    database = datetime.now(UTC) + timedelta(days=5)

    tally.clock(database)

    assert abs(tally.now() - database) < timedelta(minutes=1)


def test_latency_ends_when_a_job_begins_and_not_when_it_is_claimed() -> None:
    tally = Tally()
    ahead = claimed(run_at=datetime.now(UTC) - timedelta(seconds=2))
    tally.clock(datetime.now(UTC))

    tally.claimed([ahead])
    before = shown(tally)
    tally.began(ahead, perf_counter() + 10)

    found = shown(tally)
    assert before["ostinato_jobs_claimed_total{job_type=greet}"] == 1
    assert before.get("ostinato_queue_latency_seconds_count{job_type=greet}", 0) == 0
    assert found["ostinato_queue_latency_seconds_bucket{job_type=greet,le=10.0}"] == 0
    assert found["ostinato_queue_latency_seconds_bucket{job_type=greet,le=30.0}"] == 1


def test_a_value_counts_for_its_bound_and_all_above() -> None:
    tally = Tally()

    for seconds in (0.0, 0.001, 0.002, 5_000.0):
        tally.tried("greet", seconds)

    found = shown(tally)
    buckets = [value for name, value in found.items() if "duration_seconds_bucket" in name]
    assert buckets == [2, 3, *[3] * 14, 4]
    assert found["ostinato_attempt_duration_seconds_sum{job_type=greet}"] == 5_000.003


def test_codes_without_end_cost_no_series_without_end() -> None:
    tally = Tally()

    for number in range(1_000):
        tally.ended(claimed(), "retried", f"ORDER_{number}")
    tally.ended(claimed(), "retried", Code.TIMEOUT)

    codes = codes_of(shown(tally))
    assert len(codes) == MOST_CODES + 2
    assert {"OTHER", "TIMEOUT", "ORDER_0"} <= codes


def codes_of(found: Iterable[str]) -> set[str]:
    return {match[1] for name in found if (match := re.search(r"code=(\w+),.*outcome=retried", name))}


def test_two_workers_in_one_process_do_not_meet() -> None:
    one, other = Tally(), Tally()

    one.completed([claimed()])

    assert (shown(one)[COMPLETED], shown(other).get(COMPLETED)) == (1, None)

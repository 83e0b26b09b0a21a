"""The commands, run as processes against a real server."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from ostinato import store
from ostinato.store import Claimed, JobType, Lanes, NewWorker
from tests.cli.command import enqueued, ostinato
from tests.postgres.conftest import on

# The columns that are promised, and the concurrency key.
COLUMNS = (
    *("id", "namespace", "queue", "job_type", "job_version", "payload", "state", "priority", "run_at", "attempt"),
    *("max_attempts", "timeout", "dedup_key", "concurrency_key", "context", "worker_id", "lease", "attempts"),
    *("error_code", "error_message", "progress", "output", "schedule_id", "cancel_requested_at", "created_at"),
    *("started_at", "finished_at"),
)


async def claim(conn: Any, *, queue: str = "default") -> Claimed:
    new = NewWorker(namespace="default", queues=[queue], job_types=[JobType(name="send_email")], pod="mailer-7")
    worker = await store.register_worker(conn, new, lease=timedelta(minutes=5))
    [job] = await store.claim(conn, worker, Lanes("default", [queue]), types=["send_email"], limit=1)
    return job


async def bury(conn: Any, *, code: str = "TIMEOUT", queue: str = "default") -> UUID:
    job = await claim(conn, queue=queue)
    await store.dead_letter(conn, job.held, code=code, message="too slow\nby far")
    return job.id


def buried(dsn: str, *arguments: object, code: str = "TIMEOUT", queue: str = "default") -> str:
    enqueued(dsn, "--queue", queue, *arguments)
    return str(on(dsn, lambda conn: bury(conn, code=code, queue=queue)))


def state(dsn: str, job_id: str) -> str:
    return str(on(dsn, lambda conn: store.get_job(conn, UUID(job_id))).state)


def ids(dsn: str, *arguments: object) -> list[str]:
    done = ostinato(*arguments, "-o", "json", dsn=dsn)
    assert done.code == 0, done.err
    return [item["id"] for item in done.json]


# migrate


def test_migrate_applies_everything_once(empty_dsn: str) -> None:
    planned = ostinato("migrate", "--dry-run", dsn=empty_dsn)
    first = ostinato("migrate", dsn=empty_dsn)
    second = ostinato("migrate", dsn=empty_dsn)

    assert planned.out.replace("would apply", "applied") == first.out
    assert first.out.startswith("applied 0001_jobs.sql\n")
    assert (second.code, second.out) == (0, "nothing to do: the schema is up to date\n")


def test_what_migrate_prints_makes_the_same_schema(empty_dsn: str) -> None:
    script = ostinato("migrate", "--print").out

    on(empty_dsn, lambda conn: conn.execute(script))

    assert ostinato("migrate", "--dry-run", "-o", "json", dsn=empty_dsn).json == {"pending": []}
    assert ostinato("migrate", "--print", dsn=empty_dsn).out == ""


# enqueue


def test_enqueue_passes_every_option_on(dsn: str) -> None:
    options = {
        "--payload": '{"to": "a"}',
        "--queue": "mail",
        "--namespace": "shop",
        "--priority": "7",
        "--run-at": "2030-01-31T09:00:00+09:00",
        "--dedup-key": "d",
        "--dedup": "replace",
        "--concurrency-key": "c",
        "--max-attempts": "9",
        "--timeout": "1m30s",
        "--context": '{"tenant": "acme"}',
        "--job-version": "3",
    }

    job_id = enqueued(dsn, *(part for option in options.items() for part in option))

    job = ostinato("jobs", "show", job_id, "-o", "json", dsn=dsn).json
    assert (job["payload"], job["context"]) == ({"to": "a"}, {"tenant": "acme"})
    assert (job["queue"], job["namespace"], job["priority"], job["job_version"]) == ("mail", "shop", 7, 3)
    assert (job["dedup_key"], job["concurrency_key"], job["max_attempts"]) == ("d", "c", 9)
    assert (job["timeout"], job["run_at"]) == (90.0, "2030-01-31T00:00:00Z")


def test_enqueue_says_whether_the_job_is_new(dsn: str) -> None:
    first = ostinato("enqueue", "send_email", "--idempotency-key", "k", dsn=dsn)
    second = ostinato("enqueue", "send_email", "--idempotency-key", "k", dsn=dsn)

    job_id = first.out.split()[0]
    assert first.out == f"{job_id} created\n"
    assert second.out == f"{job_id} exists already, by its key\n"


def test_enqueue_reads_the_payload_from_a_file_or_standard_input(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "payload.json").write_text('{"from": "file"}')

    enqueued(dsn, "--payload-file", tmp_path / "payload.json")
    piped = ostinato("enqueue", "send_email", "--payload-file", "-", dsn=dsn, stdin='{"from": "pipe"}')

    jobs = ostinato("jobs", "list", "-o", "json", dsn=dsn).json
    assert piped.code == 0
    assert [job["payload"] for job in jobs] == [{"from": "pipe"}, {"from": "file"}]


def test_enqueue_uses_the_namespace_of_the_environment(dsn: str) -> None:
    ostinato("enqueue", "send_email", dsn=dsn, OSTINATO_NAMESPACE="shop")

    assert len(ids(dsn, "jobs", "list", "--namespace", "shop")) == 1
    assert ids(dsn, "jobs", "list") == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["enqueue", "x", "--payload", "{a}"], "is not JSON"),
        (["enqueue", "x", "--payload", "[1]"], "must be an object"),
        (["enqueue", "x", "--payload", '{"a": NaN}'], "is not JSON"),
        (["enqueue", "x", "--payload", "{}", "--payload-file", "-"], "not both"),
        (["enqueue", "no spaces"], "job_type is 'no spaces'"),
        (["enqueue", "x", "--delay", "5x"], "write it as '90s', '5m'"),
        (["enqueue", "x", "--delay", "5m", "--run-at", "2030-01-01T00:00:00Z"], "not both"),
        (["enqueue", "x", "--run-at", "2030-01-01T00:00:00"], "no time zone"),
        (["enqueue", "x", "--priority", "70000"], "priority is 70000"),
        (["jobs", "show", "abc"], "'abc' is not a valid UUID"),
        (["jobs", "list", "--since", "yesterday"], "yesterday"),
        (["jobs", "list", "--namespace", "No"], "namespace is 'No'"),
        (["jobs", "list", "-A", "--namespace", "a"], "not both"),
        (["dead-letters", "retry"], "--all"),
        (["dead-letters", "retry", "--all", "--delay", "5m", "--at", "2030-01-01T00:00:00Z"], "not both"),
    ],
)
def test_a_wrong_argument_is_code_2_and_changes_nothing(dsn: str, arguments: list[str], said: str) -> None:
    done = ostinato(*arguments, dsn=dsn)

    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert ids(dsn, "jobs", "list", "-A") == []


# jobs


def test_a_list_as_json_has_the_columns_by_their_names(dsn: str) -> None:
    enqueued(dsn)

    [job] = ostinato("jobs", "list", "-o", "json", dsn=dsn).json

    assert tuple(job) == COLUMNS
    assert datetime.fromisoformat(job["created_at"]).tzinfo == UTC


def test_a_list_as_a_table_has_whole_ids_and_ages(dsn: str) -> None:
    job_id = enqueued(dsn, "--delay", "2h")

    lines = ostinato("jobs", "list", dsn=dsn).out.splitlines()

    assert lines[0].split() == ["ID", "QUEUE", "TYPE", "STATE", "ATTEMPT", "WHEN", "AGE", "ERROR"]
    assert lines[1].split()[:7] == [job_id, "default", "send_email", "pending", "0", "in", "1h59m"]
    assert lines[0].index("STATE") == lines[1].index("pending")


def test_filters_choose_jobs(dsn: str) -> None:
    dead = buried(dsn, "--context", '{"tenant": "acme", "n": 1}', code="TIMEOUT")
    waiting = enqueued(dsn, "--queue", "slow", job_type="report")
    other = enqueued(dsn, "--namespace", "shop")
    worker = ostinato("jobs", "show", dead, "-o", "json", dsn=dsn).json["worker_id"]

    assert ids(dsn, "jobs", "list") == [waiting, dead]
    assert ids(dsn, "jobs", "list", "-A") == [other, waiting, dead]
    assert ids(dsn, "jobs", "list", "--queue", "slow") == [waiting]
    assert ids(dsn, "jobs", "list", "--type", "report") == [waiting]
    assert ids(dsn, "jobs", "list", "--state", "dead_lettered", "--state", "running") == [dead]
    assert ids(dsn, "jobs", "list", "--code", "TIMEOUT") == [dead]
    assert ids(dsn, "jobs", "list", "--worker", worker) == [dead]
    assert ids(dsn, "jobs", "list", "--context", '{"tenant": "acme"}') == [dead]
    assert ids(dsn, "jobs", "list", "--since", "1h") == [waiting, dead]
    assert ids(dsn, "jobs", "list", "--until", "1h") == []
    assert ids(dsn, "jobs", "list", "--since", "2020-01-01T00:00:00Z", "--until", "2020-01-02T00:00:00Z") == []


def test_a_full_page_names_the_way_to_the_next(dsn: str) -> None:
    made = [enqueued(dsn) for _ in range(3)]

    page = ostinato("jobs", "list", "--limit", 2, dsn=dsn)
    rest = ids(dsn, "jobs", "list", "--limit", 2, "--before", made[1])

    assert f"--before {made[1]}" in page.err
    assert rest == [made[0]]


def test_show_tells_who_runs_a_job_and_how_to_stop_it(dsn: str) -> None:
    job_id = enqueued(dsn, "--payload", '{"to": "ada"}')
    job = on(dsn, claim)
    on(dsn, lambda conn: store.progress(conn, job.held, {"done": 3}))

    page = ostinato("jobs", "show", job_id, dsn=dsn).out

    assert "running for" in page
    assert "pod mailer-7" in page
    assert "1 of 5" in page
    assert '"to": "ada"' in page
    assert '"done": 3' in page
    assert f"ostinato jobs cancel {job_id}" in page


def test_show_tells_each_failed_attempt_and_what_to_do(dsn: str) -> None:
    job_id = buried(dsn)

    page = ostinato("dead-letters", "show", job_id, dsn=dsn).out

    assert "dead-lettered 0s ago" in page
    assert "TIMEOUT: too slow\n            by far" in page
    assert "Failed attempts\n  1.  " in page
    assert f"ostinato dead-letters retry {job_id}" in page


def test_what_a_job_says_cannot_command_the_terminal(dsn: str) -> None:
    enqueued(dsn, "--payload", '{"to": "\x9b2J"}')
    job = on(dsn, claim)
    on(dsn, lambda conn: store.dead_letter(conn, job.held, code="X", message="\x1b[2Jgone"))

    outputs = [ostinato("jobs", *command, dsn=dsn).out for command in (["list"], ["show", job.id])]

    assert all("[2Jgone" in output for output in outputs)
    assert not any(command in output for output in outputs for command in ("\x1b", "\x9b"))


def test_an_unknown_job_is_code_1(dsn: str) -> None:
    job_id = uuid4()

    results = [
        ostinato(*command, job_id, dsn=dsn)
        for command in (["jobs", "show"], ["jobs", "cancel"], ["jobs", "retry"], ["dead-letters", "retry"])
    ]

    assert [done.code for done in results] == [1, 1, 1, 1]
    assert all(f"there is no job {job_id}" in done.err for done in results)


def test_cancel_says_what_became_of_each_job(dsn: str) -> None:
    running, waiting = enqueued(dsn), enqueued(dsn, "--delay", "1h")
    on(dsn, claim)

    done = ostinato("jobs", "cancel", running, waiting, "--reason", "a mistake", dsn=dsn)
    again = ostinato("jobs", "cancel", waiting, dsn=dsn)

    assert done.code == 0
    assert f"{running} asked to stop" in done.out
    assert f"{waiting} cancelled" in done.out
    assert (again.code, again.out) == (1, f"{waiting} not cancelled: it had finished already\n")
    assert ostinato("jobs", "show", waiting, "-o", "json", dsn=dsn).json["error_message"] == "a mistake"


def test_retry_hastens_a_waiting_job_and_redrives_a_dead_letter(dsn: str) -> None:
    dead = buried(dsn)
    waiting = enqueued(dsn, "--delay", "1h")

    done = ostinato("jobs", "retry", waiting, dead, dsn=dsn)

    assert done.code == 0
    queue = ostinato("queues", "-o", "json", dsn=dsn).json
    assert [(line["queue"], line["ready"], line["dead_lettered"]) for line in queue] == [("default", 2, 0)]


def test_retry_refuses_other_jobs_and_says_what_to_do(dsn: str) -> None:
    running = enqueued(dsn, "--payload", '{"it": "runs"}')
    on(dsn, claim)
    called_off = enqueued(dsn, "--queue", "slow", "--payload", '{"it": "was called off"}')
    ostinato("jobs", "cancel", called_off, dsn=dsn)

    done = ostinato("jobs", "retry", running, called_off, dsn=dsn)

    assert (done.code, done.out) == (1, "")
    assert f"ostinato jobs cancel {running}" in done.err
    assert 'ostinato enqueue send_email -n default --queue slow --payload \'{"it": "was called off"}\'' in done.err


# dead letters


def test_dead_letters_are_retried_by_filter(dsn: str) -> None:
    late, refused = buried(dsn, code="TIMEOUT"), buried(dsn, code="REFUSED")

    planned = ostinato("dead-letters", "retry", "--code", "TIMEOUT", "--since", "1h", "--dry-run", dsn=dsn)
    untouched = ids(dsn, "dead-letters", "list")
    done = ostinato("dead-letters", "retry", "--code", "TIMEOUT", "--since", "1h", dsn=dsn)

    assert (planned.out, untouched) == ("would retry 1 dead letters\n", [refused, late])
    assert (done.code, done.out) == (0, "retried 1 dead letters\n")
    assert (state(dsn, late), state(dsn, refused)) == ("pending", "dead_lettered")


def test_retrying_all_stays_in_its_namespace_and_can_wait_and_start_over(dsn: str) -> None:
    job_id = buried(dsn)
    before = datetime.now(UTC)

    elsewhere = ostinato("dead-letters", "retry", "--all", "-n", "shop", dsn=dsn)
    here = ostinato("dead-letters", "retry", "--all", "--delay", "10m", "--reset-attempts", dsn=dsn)

    job = ostinato("jobs", "show", job_id, "-o", "json", dsn=dsn).json
    assert (elsewhere.out, here.out) == ("retried 0 dead letters\n", "retried 1 dead letters\n")
    assert job["attempt"] == 0
    assert datetime.fromisoformat(job["run_at"]) >= before + timedelta(minutes=9)


def test_more_dead_letters_than_a_batch_are_all_retried(dsn: str) -> None:
    letters = (
        "insert into ostinato.dead_letters (id, job_type, state, attempt, started_at, finished_at, error_code) "
        "select ostinato.uuidv7(), 'send_email', 'dead_lettered', 1, now(), now(), 'X' from generate_series(1, 1200)"
    )
    on(dsn, lambda conn: conn.execute(letters))

    done = ostinato("dead-letters", "retry", "--type", "send_email", dsn=dsn)

    assert done.out == "retried 1,200 dead letters\n"
    assert done.err == "500 so far\n1,000 so far\n"


def test_retrying_what_is_no_dead_letter_is_code_1_but_the_others_are_done(dsn: str) -> None:
    dead, waiting = buried(dsn), enqueued(dsn)

    done = ostinato("dead-letters", "retry", waiting, dead, dsn=dsn)

    assert (done.code, done.out) == (1, "retried 1 dead letters\n")
    assert f"job {waiting} is pending, not a dead letter" in done.err


# queues and workers


def test_queues_count_states_and_the_oldest_wait(dsn: str) -> None:
    enqueued(dsn)
    on(dsn, claim)
    enqueued(dsn)
    enqueued(dsn, "--delay", "1h")

    [line] = ostinato("queues", "-o", "json", dsn=dsn).json

    assert (line["pending"], line["running"], line["ready"]) == (2, 1, 1)
    assert 0 <= line["oldest_ready"] < 60


def test_workers_are_listed_with_what_they_run(dsn: str) -> None:
    enqueued(dsn)
    job = on(dsn, claim)

    table = ostinato("workers", "list", dsn=dsn).out.splitlines()
    [worker] = ostinato("workers", "list", "-o", "json", dsn=dsn).json

    assert table[1].split()[1:] == ["default", "-", "mailer-7", "default", "1/1", "live", "0s"]
    assert worker["running"] == 1
    assert job.attempt == 1

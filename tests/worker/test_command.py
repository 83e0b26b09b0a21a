"""`ostinato worker` as people and clusters run it."""

import signal
from pathlib import Path

import pytest

from tests.cli.command import ostinato
from tests.postgres.conftest import on
from tests.worker.process import drained, put, state, worker

IDLE = r"serves .* of "


def test_it_runs_what_comes_until_sigterm_and_ends_with_0(dsn: str, tmp_path: Path) -> None:
    with worker(tmp_path, dsn, "--jobs", "shop") as process:
        process.until(IDLE)
        job = put(dsn, "greet", {"name": "Ada"})
        process.until("Ada")
        done = process.end()

    assert done.code == 0
    assert state(dsn, job)["state"] == "completed"
    assert ostinato("workers", "list", "-o", "json", dsn=dsn).json == []


def test_ctrl_c_ends_it_as_gracefully(dsn: str, tmp_path: Path) -> None:
    with worker(tmp_path, dsn, "--jobs", "shop") as process:
        process.until(IDLE)
        done = process.end(signal.SIGINT)

    assert done.code == 0
    assert "Traceback" not in done.err


def test_what_does_not_end_within_the_grace_is_given_back_without_spending_an_attempt(dsn: str, tmp_path: Path) -> None:
    job = put(dsn, "sleep")
    with worker(tmp_path, dsn, "--jobs", "shop", "--grace", "0s") as process:
        process.until("asleep")
        done = process.end()

    assert done.code == 0
    assert tuple(state(dsn, job)) == ("pending", 0)


def test_a_thread_that_never_ends_does_not_keep_the_process(dsn: str, tmp_path: Path) -> None:
    job = put(dsn, "hang")
    with worker(tmp_path, dsn, "--jobs", "shop", "--grace", "0s") as process:
        process.until("hangs")
        done = process.end()

    assert done.code == 0
    assert "the process ends without it" in done.err
    assert state(dsn, job)["state"] == "pending"


def test_a_handler_that_ignores_its_end_is_given_up_at_the_second_signal(dsn: str, tmp_path: Path) -> None:
    job = put(dsn, "ignore")
    with worker(tmp_path, dsn, "--jobs", "shop") as process:
        process.until("ignores")
        process.send(signal.SIGTERM)
        process.until("stops: ")
        done = process.end()

    assert done.code == 0
    assert tuple(state(dsn, job)) == ("pending", 0)


def test_drain_runs_what_is_due_and_says_what_became_of_it(dsn: str, tmp_path: Path) -> None:
    jobs = [put(dsn, "greet"), put(dsn, "greet"), put(dsn, "refuse")]
    later = put(dsn, "greet", delay="1h")

    done = drained(tmp_path, dsn, "--jobs", "shop")

    assert (done.code, done.out) == (0, "completed 2\ndead_lettered 1\n")
    assert [state(dsn, job)["state"] for job in [*jobs, later]] == [
        "completed",
        "completed",
        "dead_lettered",
        "pending",
    ]


def test_drain_tells_programs_in_json(dsn: str, tmp_path: Path) -> None:
    put(dsn, "greet")

    assert drained(tmp_path, dsn, "--jobs", "shop", "-o", "json").json == {"completed": 1}
    assert drained(tmp_path, dsn, "--jobs", "shop").out == "nothing was due\n"


def test_sigterm_cuts_a_drain_short_and_loses_nothing(dsn: str, tmp_path: Path) -> None:
    job = put(dsn, "sleep")
    with worker(tmp_path, dsn, "--jobs", "shop", "--drain", "--grace", "0s") as process:
        process.until("asleep")
        done = process.end()

    assert (done.code, done.out) == (0, "released 1\n")
    assert tuple(state(dsn, job)) == ("pending", 0)


def test_modules_and_queues_may_be_repeated_or_listed(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("from ostinato import job\n@job('other')\nasync def other(): ...\n")
    (tmp_path / "third.py").write_text("from ostinato import job\n@job('third')\nasync def third(): ...\n")
    jobs = [put(dsn, "greet"), put(dsn, "other", queue="a"), put(dsn, "third", queue="b")]

    drained(tmp_path, dsn, "--jobs", "shop,other", "--jobs", "third", "--queues", "a,b", "--queues", "default")

    assert {state(dsn, job)["state"] for job in jobs} == {"completed"}


def test_installed_packages_offer_their_jobs(dsn: str, tmp_path: Path) -> None:
    info = tmp_path / "shop-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[ostinato.jobs]\nshop = shop\n")
    put(dsn, "greet")

    done = drained(tmp_path, dsn)

    assert done.out == "completed 1\n"


def test_the_state_is_opened_for_the_handlers_and_closed_at_the_end(dsn: str, tmp_path: Path) -> None:
    put(dsn, "greet", {"name": "Ada"})

    done = drained(tmp_path, dsn, "--jobs", "shop", "--state", "shop:lifespan")

    assert done.out.splitlines() == ["opened", "closed", "completed 1"]
    assert "hello Ada" in done.err


def test_the_pod_says_who_it_is(dsn: str, tmp_path: Path) -> None:
    drained(tmp_path, dsn, "--jobs", "shop", OSTINATO_POOL="emails", OSTINATO_POD="emails-1")
    drained(tmp_path, dsn, "--jobs", "shop", "--pod", "emails-2", OSTINATO_POOL="emails", OSTINATO_POD="emails-1")

    rows = on(dsn, lambda conn: conn.fetch("select pool, pod from ostinato.workers order by started_at"))
    assert [tuple(row) for row in rows] == [("emails", "emails-1"), ("emails", "emails-2")]


def test_the_builtin_types_are_served_when_asked_for(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "statements.toml").write_text('[one]\nstatement = "select 1"\n')
    jobs = [put(dsn, "log", {"message": "heard"}), put(dsn, "sql", {"name": "one"})]

    done = drained(tmp_path, dsn, "--builtin", OSTINATO_SQL_FILE=str(tmp_path / "statements.toml"))

    assert [state(dsn, job)["state"] for job in jobs] == ["completed", "completed"]
    assert '{"message":"heard"}' in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no jobs: give --jobs"),
        (["--jobs", "nowhere.jobs"], "there is no module 'nowhere'"),
        (["--jobs", "broken"], "it cannot be imported: ZeroDivisionError: division by zero"),
        (["--jobs", "empty"], "it must name a module that holds a handler"),
        (["--jobs", "shop", "--queues", "A B"], "A B"),
        (["--jobs", "shop", "--concurrency", "0"], "--concurrency"),
        (["--jobs", "shop", "--grace", "soon"], "soon"),
        (["--jobs", "shop", "--state", "shop"], "MODULE:NAME"),
        (["--jobs", "shop", "--state", "shop:nothing"], "nothing"),
        (["--jobs", "shop", "--health-port", "99999"], "--health-port"),
    ],
)
def test_a_wrong_argument_is_code_2_and_a_sentence(dsn: str, tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "empty.py").write_text("")

    done = drained(tmp_path, dsn, *arguments)

    assert (done.code, "Traceback" in done.err) == (2, False)
    assert said in done.err


def test_an_error_in_a_module_names_its_place(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("\n1 / 0\n")

    assert f"({tmp_path / 'broken.py'}, line 2)" in drained(tmp_path, dsn, "--jobs", "broken").err


def test_without_a_usable_database_it_is_code_3(empty_dsn: str, tmp_path: Path) -> None:
    unreachable = drained(tmp_path, "postgresql://me:secret@127.0.0.1:1/db", "--jobs", "shop")
    not_migrated = drained(tmp_path, empty_dsn, "--jobs", "shop")

    assert (unreachable.code, not_migrated.code) == (3, 3)
    assert "check the host and the port" in unreachable.err
    assert "secret" not in unreachable.err
    assert "run `ostinato migrate`" in not_migrated.err

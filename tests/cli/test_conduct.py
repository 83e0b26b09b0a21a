"""How the commands behave: without a database, with a wrong one, when interrupted, and the demo."""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import COMMAND, enqueued, environment, ostinato
from tests.postgres.conftest import on


def test_without_a_database_the_error_says_how_to_give_one() -> None:
    done = ostinato("jobs", "list")

    assert done.code == 2
    assert "--dsn" in done.err
    assert "OSTINATO_DSN" in done.err


def test_a_database_that_is_not_migrated_is_code_3(empty_dsn: str) -> None:
    results = [ostinato(*command, dsn=empty_dsn) for command in (["jobs", "list"], ["enqueue", "x"], ["queues"])]

    assert [done.code for done in results] == [3, 3, 3]
    assert all("run `ostinato migrate`" in done.err for done in results)


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        ("postgresql://me:secret@127.0.0.1:1/db", "check the host and the port"),
        ("postgresql://me:secret@no-such-host.invalid/db", "check the host and the port"),
        ("postgresql://me:secret@/db?host=/tmp/no-such-folder", "check the host and the port"),
    ],
)
def test_an_unreachable_database_is_code_3_and_its_password_is_not_shown(dsn: str, said: str) -> None:
    done = ostinato("jobs", "list", dsn=dsn)

    assert done.code == 3
    assert said in done.err
    assert "secret" not in done.err


def test_a_database_that_does_not_exist_is_named(server: Any) -> None:
    done = ostinato("jobs", "list", dsn=server.dsn_for("nowhere"))

    assert done.code == 3
    assert 'database "nowhere" does not exist' in done.err


@pytest.mark.parametrize("dsn", ["me:secret@host/db", "host=h password=secret", "postgresql://me:secret@host:port/db"])
def test_a_dsn_that_is_none_is_code_2_and_not_shown(dsn: str) -> None:
    done = ostinato("jobs", "list", "--dsn", dsn)

    assert done.code == 2
    assert "postgresql://user:password@host:5432/database" in done.err
    assert "secret" not in done.err


def test_a_user_without_rights_is_told_to_ask_for_them(dsn: str) -> None:
    on(dsn, lambda conn: conn.execute("do $$ begin create role guest login; exception when others then end $$"))

    done = ostinato("jobs", "list", dsn=dsn.replace("postgres@", "guest@"))

    assert done.code == 3
    assert "permission denied for schema ostinato" in done.err


def test_a_bad_setting_is_named(dsn: str) -> None:
    done = ostinato("jobs", "list", dsn=dsn, OSTINATO_LEASE="soon")

    assert done.code == 2
    assert "OSTINATO_LEASE is 'soon'; write it as" in done.err


# behaving in a shell


def test_a_closed_pipe_is_quiet(dsn: str) -> None:
    for _ in range(3):
        enqueued(dsn)

    with subprocess.Popen(
        [*COMMAND, "jobs", "list", "-o", "json"], env=environment(dsn), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()

    assert (process.returncode, said) == (141, b"")


def test_a_full_disk_is_named(dsn: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "jobs", "list", "-o", "json"],
            env=environment(dsn),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert done.returncode == 1
    assert done.stderr == "Error: cannot write the answer: No space left on device; make room, or write it elsewhere\n"


def test_a_statement_that_took_too_long_is_no_lost_connection(dsn: str) -> None:
    holder = "begin; lock table ostinato.jobs; select pg_sleep(3); commit"
    with ThreadPoolExecutor(1) as thread:
        thread.submit(on, dsn, lambda conn: conn.execute(holder))
        on(dsn, lambda conn: conn.execute("select pg_sleep(0.5)"))
        done = ostinato("jobs", "list", dsn=f"{dsn}&options=-cstatement_timeout%3D200")

    assert done.code == 3
    assert "canceling statement due to statement timeout; raise statement_timeout" in done.err


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["migrate"],
        ["enqueue"],
        ["jobs"],
        ["jobs", "list"],
        ["jobs", "show"],
        ["jobs", "cancel"],
        ["jobs", "retry"],
        ["dead-letters", "list"],
        ["dead-letters", "show"],
        ["dead-letters", "retry"],
        ["queues"],
        ["workers", "list"],
        ["doctor"],
        ["worker"],
        ["demo"],
    ],
)
def test_every_command_explains_itself(command: list[str]) -> None:
    done = ostinato(*command, "--help")

    assert done.code == 0
    assert command == ["jobs"] or "ostinato " + " ".join(command) in done.out.partition("xample")[2]


# demo


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ostinato-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder / "postgres"
    shutil.rmtree(folder)


def test_the_demo_ends_by_itself_and_works_again(data_dir: Path) -> None:
    first = ostinato("demo", "--data", data_dir)
    second = ostinato("demo", "--data", data_dir)

    moves = [line.split()[0] for line in first.out.splitlines() if "→" in line]
    assert {"claim", "progress", "retry", "complete", "dead_letter", "redrive", "cancel", "recover"} <= set(moves)
    assert "1 write refused" in first.out
    assert (first.code, second.code) == (0, 0)
    assert "The schema is up to date." in second.out


def test_the_demo_leaves_no_live_job_behind(dsn: str) -> None:
    done = ostinato("demo", "--dsn", dsn)

    assert done.code == 0
    assert ostinato("queues", "-A", "-o", "json", dsn=dsn).json == []
    assert ostinato("workers", "list", "-A", "-o", "json", dsn=dsn).json == []


@pytest.mark.parametrize("moment", ["Starting PostgreSQL", "1. ", "again in 1 s", "kill -9"])
def test_ctrl_c_ends_the_demo_cleanly(data_dir: Path, moment: str) -> None:
    with subprocess.Popen(
        [*COMMAND, "demo", "--data", str(data_dir)],
        env=environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any(moment in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read() if process.stderr else ""

    assert (process.returncode, said.strip()) == (130, "")

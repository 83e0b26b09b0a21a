"""SIGTERM: what runs is finished or given back, no attempt is spent, and the process ends with 0 within the grace."""

import socket
import time
from pathlib import Path
from signal import SIGTERM

import pytest

from tests.postgres.conftest import on
from tests.worker.process import Process, put, state, until, worker

GRACE = 6.0
ARGUMENTS = ("--jobs", "shop", "--grace", f"{GRACE:g}s", "--stop-grace", "3s")
OPENING = """
import asyncio
import sys
from contextlib import asynccontextmanager


@asynccontextmanager
async def waits():
    print("opens", file=sys.stderr, flush=True)
    try:
        await asyncio.sleep(600)
        yield
    finally:
        print("closes", file=sys.stderr, flush=True)


@asynccontextmanager
async def clings():
    print("opens", file=sys.stderr, flush=True)
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            print("clings", file=sys.stderr, flush=True)
    yield
"""


def ended_in(process: Process) -> float:
    """In seconds from SIGTERM to the exit code, which must be 0."""
    began = time.monotonic()
    assert process.end(SIGTERM).code == 0
    return time.monotonic() - began


def retired(dsn: str) -> bool:
    return bool(on(dsn, lambda conn: conn.fetchval("select bool_and(ended_at is not null) from ostinato.workers")))


def test_whatever_runs_the_process_ends_within_the_grace(dsn: str, tmp_path: Path) -> None:
    names = ("finish", "obey", "ignore", "deaf", "deaf_process")
    jobs = {name: put(dsn, name) for name in names}
    with worker(tmp_path, dsn, *ARGUMENTS) as process:
        told = "select count(*) = 1 from ostinato.jobs where progress is not null"
        until(lambda: on(dsn, lambda conn: conn.fetchval(told)) or None)
        for _ in range(4):
            process.until("begins|waits|ignores|is deaf")
        took = ended_in(process)

    assert took < GRACE
    assert {name: tuple(state(dsn, job)) for name, job in jobs.items()} == {
        "finish": ("completed", 1),
        **dict.fromkeys(names[1:], ("pending", 0)),
    }
    assert retired(dsn)
    log = "".join(process.log)
    # Those that can finish are let; then one is told, and only then given up.
    assert log.index("finishes") < log.index("was told: shutdown") < log.index("does not stop though it was told to")


def test_with_nothing_left_to_run_it_ends_at_once(dsn: str, tmp_path: Path) -> None:
    job = put(dsn, "finish")
    with worker(tmp_path, dsn, "--jobs", "shop", "--grace", "1h") as process:
        process.until("begins")
        took = ended_in(process)

    assert took < 10
    assert tuple(state(dsn, job)) == ("completed", 1)


def test_an_application_that_does_not_close_delays_the_end_for_a_moment_only(dsn: str, tmp_path: Path) -> None:
    with worker(tmp_path, dsn, *ARGUMENTS, "--state", "shop:never_closed") as process:
        process.until("serves")
        took = ended_in(process)

    assert took < GRACE
    assert retired(dsn)


@pytest.mark.parametrize("more", [(), ("--drain",)])
def test_a_start_is_called_off_and_what_was_opened_is_closed(dsn: str, tmp_path: Path, more: tuple[str, ...]) -> None:
    (tmp_path / "opening.py").write_text(OPENING)
    with worker(tmp_path, dsn, *ARGUMENTS, "--state", "opening:waits", *more) as process:
        process.until("opens")
        took = ended_in(process)

    assert took < GRACE / 2
    assert "closes" in "".join(process.log)


def test_a_database_that_never_answers_does_not_keep_a_start_that_is_called_off(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dsn = f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/shop"
        with worker(tmp_path, dsn, *ARGUMENTS, "--health-port", "0") as process:
            process.until("on port")
            with silent.accept()[0]:
                took = ended_in(process)

    assert took < GRACE / 2


def test_an_application_that_does_not_let_its_start_be_called_off_is_left_at_the_end_of_the_grace(
    dsn: str, tmp_path: Path
) -> None:
    (tmp_path / "opening.py").write_text(OPENING)
    with worker(tmp_path, dsn, "--jobs", "shop", "--grace", "2s", "--state", "opening:clings") as process:
        process.until("opens")
        took = ended_in(process)

    assert took < 2


def test_a_second_signal_ends_such_a_start_at_once(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "opening.py").write_text(OPENING)
    with worker(tmp_path, dsn, "--jobs", "shop", "--grace", "1h", "--state", "opening:clings") as process:
        process.until("opens")
        process.send(SIGTERM)
        process.until("clings")
        took = ended_in(process)

    assert took < 1.5  # not the 3 s that closing may take


def test_a_module_that_takes_long_to_import_is_not_waited_for(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import sys, time\nprint('imports', file=sys.stderr, flush=True)\ntime.sleep(60)\n"
    )
    with worker(tmp_path, dsn, "--jobs", "slow") as process:
        process.until("imports")
        took = ended_in(process)

    assert took < GRACE / 2

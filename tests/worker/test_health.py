"""What probes are told, over real HTTP."""

import asyncio
import os
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ostinato import InvalidArgument, enqueue, job
from ostinato_worker import Worker
from ostinato_worker.condition import RECENT, Condition
from ostinato_worker.health import MOST_CONNECTIONS, PATIENCE, _listen
from tests.postgres.conftest import on
from tests.worker.process import Process, answer, get, put, until, worker

WELL = Condition(registered=True, holds_lease=True, has_room=True, silent=0.1, slots=8)


def port_of(process: Process) -> int:
    return int(process.until(r"on port (\d+)")[1])


def until_ready(port: int, ready: bool = True) -> str:
    def look() -> str | None:
        status, text = get(port, "/readyz")
        return text if (status == 200) is ready else None

    return until(look)


# what counts as ready


def test_a_worker_is_ready_if_it_can_claim() -> None:
    assert WELL.unready is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"stopping": True}, "it is stopping"),
        ({"registered": False}, "not registered"),
        ({"holds_lease": False}, "does not hold its lease"),
        ({"draining": True}, "told to drain"),
        ({"silent": None}, "has not claimed yet"),
        ({"silent": RECENT + 1}, "was 6 s ago"),
    ],
)
def test_a_worker_that_cannot_claim_says_why(change: dict[str, object], reason: str) -> None:
    facts = {name: getattr(WELL, name) for name in Condition.__slots__}

    unready = Condition(**(facts | change)).unready

    assert unready is not None
    assert reason in unready


def test_a_full_house_is_ready_as_long_as_it_holds_its_lease() -> None:
    full = Condition(registered=True, holds_lease=True, has_room=False, silent=600, slots=1, busy=1)

    assert full.unready is None
    assert Condition(registered=True, holds_lease=False, slots=1, busy=1).unready is not None


# as a cluster asks


def test_a_running_worker_lives_and_becomes_ready(dsn: str, tmp_path: Path) -> None:
    with worker(tmp_path, dsn, "--jobs", "shop", "--health-port", "0") as process:
        port = port_of(process)

        assert get(port, "/livez") == (200, "alive\n")
        assert until_ready(port) == "ready\n"
        assert get(port, "/readyz?verbose=1")[0] == 200


def test_it_answers_while_the_application_still_starts(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import asyncio\nfrom contextlib import asynccontextmanager\n"
        "@asynccontextmanager\nasync def state():\n    await asyncio.sleep(60)\n    yield\n"
    )
    arguments = ["--jobs", "shop", "--state", "slow:state", "--health-port", "0"]
    with worker(tmp_path, dsn, *arguments) as process:
        port = port_of(process)

        assert get(port, "/livez")[0] == 200
        assert get(port, "/readyz") == (503, "it is not registered in the database (yet)\n")


def test_while_it_finishes_what_runs_it_lives_and_is_not_ready(dsn: str, tmp_path: Path) -> None:
    put(dsn, "sleep")
    with worker(tmp_path, dsn, "--jobs", "shop", "--health-port", "0") as process:
        port = port_of(process)
        process.until("asleep")
        process.send(signal.SIGTERM)

        assert until_ready(port, ready=False) == "it is stopping: it claims nothing more\n"
        assert get(port, "/livez")[0] == 200

        process.send(signal.SIGTERM)
        assert process.wait().code == 0


def test_a_full_house_stays_ready(dsn: str, tmp_path: Path) -> None:
    put(dsn, "sleep")
    with worker(tmp_path, dsn, "--jobs", "shop", "--concurrency", "1", "--health-port", "0") as process:
        port = port_of(process)
        process.until("asleep")

        until_ready(port)
        assert "ostinato_worker_slots_busy 1.0" in get(port, "/metrics")[1]


async def test_a_slot_that_is_free_after_a_long_time_does_not_make_it_unready(dsn: str, conn: Any) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    @job("wait")
    async def wait() -> None:
        begun.set()
        await may_end.wait()

    async with Worker(dsn, jobs=wait, concurrency=1) as worker:
        await enqueue(conn, "wait")
        await begun.wait()
        worker._claimer.last_answer -= 600
        worker._claimer.last_full -= 600
        answered = worker._claimer.last_answer
        seen = {worker.condition.unready}
        may_end.set()
        while worker._claimer.last_answer == answered:
            seen.add(worker.condition.unready)
            await asyncio.sleep(0)

    assert seen == {None}


def test_without_its_database_it_is_not_ready_and_with_it_it_is_again(dsn: str, tmp_path: Path) -> None:
    name = dsn.partition("?")[0].rpartition("/")[2]
    elsewhere = dsn.replace(name, "postgres")
    with worker(tmp_path, dsn, "--jobs", "shop", "--health-port", "0", OSTINATO_LEASE="1s") as process:
        port = port_of(process)
        until_ready(port)

        on(elsewhere, lambda conn: conn.execute(f"alter database {name} allow_connections false"))
        on(elsewhere, lambda conn: conn.execute(f"select pg_terminate_backend(pid) {BACKENDS}", name))
        reason = until_ready(port, ready=False)
        assert get(port, "/livez")[0] == 200
        on(elsewhere, lambda conn: conn.execute(f"alter database {name} allow_connections true"))

        assert "lease" in reason or "claim" in reason or "registered" in reason
        until_ready(port)
        shown = get(port, "/metrics")[1]
        assert 'ostinato_worker_reconnects_total{loop="claiming"}' in shown
        assert process.end().code == 0


BACKENDS = "from pg_stat_activity where datname = $1"


# requests


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        (b"GET /livez HTTP/1.0\r\n\r\n", 200),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"GET /../livez HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405),
        (b"hello\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: x\r\nbroken\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", 400),
        (b"GET /livez HTTP/1.1\r\nHost: " + b"x" * 10_000, 431),
    ],
)
def test_every_request_has_its_answer(port: int, sent: bytes, status: int) -> None:
    assert answer(port, sent).startswith(f"HTTP/1.1 {status} ".encode())
    assert get(port, "/livez")[0] == 200


def test_head_is_answered_without_a_body(port: int) -> None:
    said = answer(port, b"HEAD /livez HTTP/1.1\r\nHost: x\r\n\r\n")

    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 6\r\n" in said
    assert said.endswith(b"\r\n\r\n")


def test_who_holds_many_connections_and_says_nothing_is_in_nobodys_way(port: int) -> None:
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST_CONNECTIONS + 20)]
    try:
        assert get(port, "/livez")[0] == 200
        oldest, *others = silent
        oldest.settimeout(PATIENCE / 3)  # it was closed to make room
        assert oldest.recv(1) == b""
        for held in others:  # at the latest when their time is up
            held.settimeout(PATIENCE * 2)
            assert held.recv(1) == b""
    finally:
        for held in silent:
            held.close()


def test_who_is_pushed_out_leaves_no_line_in_the_log(dsn: str, tmp_path: Path) -> None:
    with worker(tmp_path, dsn, "--jobs", "shop", "--health-port", "0") as process:
        port = port_of(process)
        with ExitStack() as stack:
            for _ in range(MOST_CONNECTIONS + 20):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            assert get(port, "/livez")[0] == 200
            done = process.end()

    assert "exception" not in done.err.lower()


def test_a_port_of_which_somebody_has_one_half_is_taken() -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(InvalidArgument, match=f"health port is {number}; nobody can listen there: .* in use"):
            _listen(number)


def test_on_a_host_without_ipv6_it_listens_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)

    with _listen(0) as listening:
        assert listening.family is socket.AF_INET


def test_a_port_that_is_taken_is_code_2_and_a_sentence(dsn: str, tmp_path: Path) -> None:
    with socket.create_server(("", 0)) as taken:
        number = taken.getsockname()[1]
        with worker(tmp_path, dsn, "--jobs", "shop", "--health-port", number) as process:
            done = process.wait()

    assert done.code == 2
    assert f"health port is {number}; nobody can listen there: {os.strerror(98)}" in done.err

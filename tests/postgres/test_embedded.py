"""The embedded server, with real processes: what holds when programs are killed, run twice, or run as root."""

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncpg
import pytest

from ostinato.embedded import EmbeddedPostgres, wheel_bin_dirs
from ostinato.embedded.account import Account
from ostinato.errors import EmbeddedPostgresError
from tests.postgres.programs import (
    CORE,
    FAST,
    PROGRAM,
    Program,
    children,
    descriptors,
    gone_within,
    is_alive,
    query,
    socket_dir,
)


@pytest.fixture(scope="module")
def data_dir(folder: Path) -> Path:
    """One directory for all tests, as initdb takes a second."""
    with EmbeddedPostgres(folder / "shared", settings=FAST):
        return folder / "shared"


def test_the_wheel_carries_16_and_18_and_the_newest_is_the_default(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, settings=FAST) as server:
        version = query(server.dsn, "SHOW server_version_num")

    assert {16, 18} <= set(wheel_bin_dirs())
    assert int(version) // 10000 == max(wheel_bin_dirs())


def test_the_dsn_is_of_user_postgres_and_reaches_any_database_whatever_its_name(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, settings=FAST) as server:
        query(server.dsn, 'DROP DATABASE IF EXISTS "a b/c?d"', 'CREATE DATABASE "a b/c?d"')

        assert query(server.dsn, "SELECT current_user || '@' || current_database()") == "postgres@postgres"
        assert query(server.dsn_for("a b/c?d"), "SELECT current_database()") == "a b/c?d"


def test_psql_reads_the_same_dsn(data_dir: Path) -> None:
    psql = wheel_bin_dirs()[18] / "psql"

    with EmbeddedPostgres(data_dir, settings=FAST) as server:
        done = subprocess.run([psql, server.dsn, "-Atc", "SELECT 42"], capture_output=True, text=True)

    assert done.stdout == "42\n", done.stderr


def test_text_is_utf8_and_no_setting_of_the_machine_leaks_in(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, settings=FAST) as server:
        assert query(server.dsn, "SHOW server_encoding") == "UTF8"
        assert query(server.dsn, "SELECT datcollate FROM pg_database WHERE datname = 'postgres'") == "C"
        assert query(server.dsn, "SELECT lower('É')") == "é"


def test_the_callers_settings_win(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, settings={"fsync": "off", "shared_buffers": "16MB", "port": "6000"}) as server:
        assert query(server.dsn, "SHOW fsync") == "off"
        assert query(server.dsn, "SHOW shared_buffers") == "16MB"
        assert query(server.dsn, "SHOW port") == "6000"


def test_two_servers_run_side_by_side(data_dir: Path, folder: Path) -> None:
    with EmbeddedPostgres(data_dir, settings=FAST) as one, EmbeddedPostgres(folder / "other", settings=FAST) as two:
        assert query(one.dsn, "SHOW data_directory") == str(data_dir)
        assert query(two.dsn, "SHOW data_directory") == str(folder / "other")


def test_it_listens_on_no_port_and_only_its_own_user_can_enter_the_sockets_directory(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, settings=FAST) as server:
        status = socket_dir(server.dsn).stat()

        assert query(server.dsn, "SHOW listen_addresses") == ""
        assert (status.st_mode & 0o777, status.st_uid) == (0o700, data_dir.stat().st_uid)


def test_a_port_opened_by_a_setting_asks_for_a_password(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    settings = {**FAST, "listen_addresses": "127.0.0.1", "port": port}

    with EmbeddedPostgres(data_dir, settings=settings), pytest.raises(asyncpg.InvalidPasswordError):
        query(f"postgresql://postgres:guess@127.0.0.1:{port}/postgres", "SELECT 1")


def test_stop_leaves_nothing_behind_and_may_be_called_again(data_dir: Path) -> None:
    children_before, descriptors_before = children(), descriptors()
    server = EmbeddedPostgres(data_dir, settings=FAST)
    server.start()
    started, sockets = children() - children_before, socket_dir(server.dsn)

    server.stop()
    server.stop()

    assert len(started) == 2, "the server and its watchdog"
    assert not any(is_alive(pid) for pid in started)
    assert descriptors() == descriptors_before
    assert not sockets.exists()
    assert not (data_dir / "postmaster.pid").exists()
    with pytest.raises(EmbeddedPostgresError, match="not running"):
        _ = server.dsn


def test_stop_leaves_nothing_behind_even_if_the_watchdog_was_killed(data_dir: Path) -> None:
    children_before = children()
    with EmbeddedPostgres(data_dir, settings=FAST) as server:
        sockets = socket_dir(server.dsn)
        (watchdog,) = children() - children_before - {server.pid}
        os.kill(watchdog, signal.SIGKILL)

    assert children() == children_before
    assert not sockets.exists()


def test_a_stopped_server_starts_again_with_its_data(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir, settings=FAST)
    server.start()
    query(server.dsn, "DROP TABLE IF EXISTS kept", "CREATE TABLE kept AS SELECT 1 AS n")
    server.stop()

    with server:
        assert query(server.dsn, "SELECT n FROM kept") == 1


def test_stop_turns_to_immediate_shutdown_when_the_fast_one_takes_too_long(data_dir: Path, folder: Path) -> None:
    # A fast shutdown waits until a replica has received everything, and this replica stands still.
    server = EmbeddedPostgres(data_dir, settings=FAST)
    server.stop_seconds = 0.5
    server.start()
    streams = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
    receive = str(wheel_bin_dirs()[18] / "pg_receivewal")
    with subprocess.Popen([receive, "-d", server.dsn, "-D", folder, "--no-loop"]) as replica:
        while query(server.dsn, streams) == 0:
            assert replica.poll() is None
        replica.send_signal(signal.SIGSTOP)
        query(server.dsn, "DROP TABLE IF EXISTS filler", "CREATE TABLE filler AS SELECT generate_series(1, 100000)")
        try:
            server.stop()
        finally:
            replica.kill()

    assert "immediate shutdown" in server.log.read_text()
    assert not (data_dir / "postmaster.pid").exists()


def test_after_kill_9_of_the_program_the_server_goes_and_the_data_stays(data_dir: Path) -> None:
    with Program(data_dir) as program:
        query(program.said["dsn"], "DROP TABLE IF EXISTS survives", "CREATE TABLE survives AS SELECT 7 AS n")
        with gone_within(program.said["pid"], 5):
            program.process.kill()

    with EmbeddedPostgres(data_dir, settings=FAST) as server:
        assert query(server.dsn, "SELECT n FROM survives") == 7


def test_after_kill_9_of_the_program_the_next_start_waits_for_the_old_server(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir, settings=FAST)
    with Program(data_dir) as program, ThreadPoolExecutor() as threads, gone_within(program.said["pid"], 0):
        os.kill(program.said["pid"], signal.SIGSTOP)  # it takes its time to shut down
        program.process.kill()
        program.process.wait()

        started = threads.submit(server.start)
        with pytest.raises(TimeoutError):
            started.result(timeout=0.3)
        os.kill(program.said["pid"], signal.SIGCONT)
        started.result()

    assert query(server.dsn, "SELECT 1") == 1
    server.stop()


def test_after_kill_9_of_the_program_its_socket_directory_goes_as_well(data_dir: Path) -> None:
    with Program(data_dir) as program:
        watchdogs = Path(f"/proc/{program.process.pid}/task/{program.process.pid}/children").read_text().split()
        (watchdog,) = {int(pid) for pid in watchdogs} - {program.said["pid"]}
        with gone_within(watchdog, 5):
            program.process.kill()

    assert not socket_dir(program.said["dsn"]).exists()


def test_a_forked_child_that_outlives_the_program_does_not_keep_the_server(data_dir: Path) -> None:
    with Program(data_dir, "fork") as program, gone_within(program.said["pid"], 5):
        program.process.kill()


def test_after_kill_9_of_program_and_server_the_next_start_recovers(data_dir: Path) -> None:
    with Program(data_dir) as program:
        query(program.said["dsn"], "DROP TABLE IF EXISTS recovered", "CREATE TABLE recovered AS SELECT 9 AS n")
        os.kill(program.said["pid"], signal.SIGKILL)
        program.process.kill()

    with EmbeddedPostgres(data_dir, settings=FAST) as server:
        assert query(server.dsn, "SELECT n FROM recovered") == 9


def test_a_stale_pid_that_another_process_has_by_now_does_not_block_a_start(data_dir: Path) -> None:
    account = Account.for_server(data_dir)
    with account.spawn(["/bin/cat"], subprocess.DEVNULL) as stranger:
        stale = data_dir / "postmaster.pid"
        stale.write_text(f"{stranger.pid}\n{data_dir}\n1\n5432\n/tmp\n\n1 1\nready\n")
        os.chown(stale, account.uid, account.gid)

        with EmbeddedPostgres(data_dir, settings=FAST) as server:
            assert query(server.dsn, "SELECT 1") == 1
        assert stranger.poll() is None


def test_ctrl_c_in_the_terminal_does_not_reach_the_server(data_dir: Path) -> None:
    with Program(data_dir, process_group=0) as program:
        groups = {os.getpgid(pid) for pid in (program.process.pid, program.said["pid"])}

        assert len(groups) == 2
        assert os.getsid(program.said["pid"]) == program.said["pid"]


def test_a_second_program_is_told_at_once_who_holds_the_directory(data_dir: Path) -> None:
    with Program(data_dir) as first, Program(data_dir) as second:
        error = second.said["error"]

        assert str(data_dir) in error
        assert f"pid {first.process.pid}" in error
        assert "choose another data directory" in error
        assert query(first.said["dsn"], "SELECT 1") == 1


def test_the_same_program_cannot_open_a_directory_twice(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, settings=FAST) as server:
        with pytest.raises(EmbeddedPostgresError, match=f"this very program .pid {os.getpid()}"):
            EmbeddedPostgres(data_dir, settings=FAST).start()
        with pytest.raises(EmbeddedPostgresError, match="this very program"):
            server.start()

        assert query(server.dsn, "SELECT 1") == 1


def test_an_initdb_killed_half_way_does_not_wedge_the_next_start(folder: Path) -> None:
    half_made = folder / "fresh.initdb-killed"
    (half_made / "base").mkdir(parents=True)
    (half_made / "PG_VERSION").write_text("18\n")

    with EmbeddedPostgres(folder / "fresh", settings=FAST) as server:
        assert query(server.dsn, "SELECT 1") == 1
    assert not half_made.exists()


def test_a_program_killed_during_initdb_leaves_no_data_directory(folder: Path) -> None:
    data_dir = folder / "killed"
    command = [sys.executable, "-c", PROGRAM, str(data_dir)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(CORE)}) as program:
        while not list(folder.glob("killed.initdb-*/PG_VERSION")):
            assert program.poll() is None
        program.kill()

    assert not data_dir.exists()
    with EmbeddedPostgres(data_dir, settings=FAST) as server:
        assert query(server.dsn, "SELECT 1") == 1


def test_a_directory_with_somebodys_files_is_refused_and_untouched(folder: Path) -> None:
    (folder / "diary").mkdir()
    (folder / "diary" / "monday.txt").write_text("rain")

    with pytest.raises(EmbeddedPostgresError, match="holds files but no database"):
        EmbeddedPostgres(folder / "diary", settings=FAST).start()

    assert (folder / "diary" / "monday.txt").read_text() == "rain"


def test_a_directory_of_another_version_is_refused_with_both_versions_named(folder: Path) -> None:
    with EmbeddedPostgres(folder / "sixteen", bin_dir=wheel_bin_dirs()[16], settings=FAST) as server:
        assert query(server.dsn, "SHOW server_version").startswith("16.")

    with pytest.raises(EmbeddedPostgresError, match=r"made by PostgreSQL 16, and .* is PostgreSQL 18: pass"):
        EmbeddedPostgres(folder / "sixteen", bin_dir=wheel_bin_dirs()[18], settings=FAST).start()


def test_a_server_that_fails_to_start_says_why_and_leaves_nothing_behind(data_dir: Path) -> None:
    children_before, descriptors_before = children(), descriptors()

    with pytest.raises(EmbeddedPostgresError, match='unrecognized configuration parameter "no_such_thing"'):
        EmbeddedPostgres(data_dir, settings={"no_such_thing": "1"}).start()

    assert children() == children_before
    assert descriptors() == descriptors_before


def test_binaries_that_are_not_there_are_an_error_that_names_them(data_dir: Path, folder: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match=f"{folder}/nowhere/initdb"):
        EmbeddedPostgres(data_dir, bin_dir=folder / "nowhere").start()

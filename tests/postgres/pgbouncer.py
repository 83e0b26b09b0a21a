"""PgBouncer before a test's database."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ostinato.embedded import EmbeddedPostgres
from ostinato.embedded.account import Account
from tests.postgres.conftest import Server

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="there is no pgbouncer on this machine")


class Bouncer:
    """PgBouncer in front of the session's server, reached over a socket of its own."""

    def __init__(self, folder: Path, server: EmbeddedPostgres, **settings: str) -> None:
        # It refuses to run as root; as the server's user it may enter the directory of the server's socket.
        account = Account.for_server(server.data_dir)
        self.folder = folder
        os.chown(folder, account.uid, account.gid)
        where = server.dsn.partition("?")[2].replace("&", " ")
        given = {
            "unix_socket_dir": str(folder),
            "listen_port": "6432",
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": "2",
        } | settings
        lines = ["[databases]", f"* = {where} user=postgres", "[pgbouncer]", "listen_addr ="]
        config = folder / "pgbouncer.ini"
        config.write_text("\n".join([*lines, *(f"{name} = {value}" for name, value in given.items())]))
        self.process = subprocess.Popen([PGBOUNCER or "", config], stderr=subprocess.PIPE, **account.options())
        assert self.process.stderr is not None
        assert any(b"process up" in line for line in iter(self.process.stderr.readline, b"")), "it did not start"

    def dsn_for(self, dsn: str) -> str:
        return f"{dsn.partition('?')[0]}?host={self.folder}&port=6432"

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate()


@contextmanager
def bouncer(server: Server, **settings: str) -> Iterator[Bouncer]:
    if not isinstance(server, EmbeddedPostgres):
        pytest.skip("PgBouncer is put in front of an embedded server only")
    with tempfile.TemporaryDirectory(prefix="ostinato-test-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        running = Bouncer(Path(folder), server, **settings)
        try:
            yield running
        finally:
            running.stop()

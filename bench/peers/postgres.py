"""The server that all are measured on, and the database that each run starts with."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg

from bench.peers.processes import family_cpu, parent
from bench.server import SETTINGS
from ostinato.embedded import EmbeddedPostgres

BENCH, TEMPLATE = "ostinato_bench", "ostinato_bench_template"
MORE: Final = {"max_connections": "200"}
NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
Starter: TypeAlias = Callable[[], AbstractContextManager["Postgres"]]

DROP: Final = f"drop database if exists {BENCH} with (force)"
DROP_TEMPLATE: Final = f"drop database if exists {TEMPLATE} with (force)"
CREATE: Final = f"create database {BENCH}"
COPY: Final = f"create database {BENCH} template {TEMPLATE}"
KEEP: Final = f"alter database {BENCH} rename to {TEMPLATE}"
LEAVE: Final = f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{BENCH}'"
BUSINESS: Final = "create table bench_biz (job bigint, at timestamptz not null default now())"


@dataclass(frozen=True)
class Postgres:
    server_dsn: str
    pid: int  # of the postmaster, if it runs on this machine; else 0

    @property
    def dsn(self) -> str:
        url = urlsplit(self.server_dsn)
        # By hand, as urlunsplit drops the slashes of a URL without a host.
        return f"{url.scheme}://{url.netloc}/{BENCH}?{url.query}"

    def connect(self) -> Connection:
        return psycopg.connect(self.dsn, autocommit=True)

    def run(self, sql: str, **values: object) -> Any:
        """In the database that is measured: the first value that the statement gives, if any."""
        return _run(self.dsn, sql, values)

    def outside(self, sql: str, **values: object) -> Any:
        """In another database, whose statistics nobody looks at."""
        return _run(self.server_dsn, sql, values)

    def cpu(self) -> float:
        return family_cpu(self.pid) if self.pid else 0.0

    def make_template(self, setup: Callable[[], object]) -> None:
        """Have a peer's schema made once; every run then starts from a copy of that empty database."""
        for statement in (DROP, DROP_TEMPLATE, CREATE):
            self.outside(statement)
        setup()
        self.run(BUSINESS)
        self.outside(LEAVE)
        self.outside(KEEP)

    def fresh(self) -> None:
        self.outside(DROP)
        self.outside(COPY)

    def clear(self) -> None:
        self.outside(DROP)
        self.outside(DROP_TEMPLATE)


@contextmanager
def servers(dsn: str | None, bin_dir: Path | None, cache: Path) -> Iterator[Starter]:
    """What gives each peer its server: our own, started anew for each, or the one that `dsn` names."""
    if dsn is not None:
        yield lambda: _given(dsn)
        return
    with tempfile.TemporaryDirectory(prefix="run-", dir=cache) as folder:
        Path(folder).chmod(0o755)
        yield lambda: _own(Path(folder, "data"), bin_dir)


@contextmanager
def _own(data_dir: Path, bin_dir: Path | None) -> Iterator[Postgres]:
    with EmbeddedPostgres(data_dir, bin_dir=bin_dir, settings=SETTINGS | MORE) as server:
        yield Postgres(_spelled_for_all(server.dsn), server.pid)


@contextmanager
def _given(dsn: str) -> Iterator[Postgres]:
    postgres = Postgres(dsn, _postmaster(dsn))
    try:
        yield postgres
    finally:
        postgres.clear()


def _spelled_for_all(dsn: str) -> str:
    """A URL without a host but with a user is one that not every client can read: the user goes to the options."""
    url = urlsplit(dsn)
    options = {**dict(parse_qsl(url.query)), "user": url.username or "postgres"}
    return f"postgresql://{url.path}?{urlencode(options, safe='/')}"


def _postmaster(dsn: str) -> int:
    with psycopg.connect(dsn) as conn:
        backend = conn.info.backend_pid
        comm = Path(f"/proc/{backend}/comm")
        return parent(backend) if comm.exists() and comm.read_text().startswith("postgres") else 0


def _run(dsn: str, sql: str, values: Mapping[str, object]) -> Any:
    with psycopg.connect(dsn, autocommit=True) as conn:
        return first_value(conn, sql, values)


def first_value(conn: Connection, sql: str, values: Mapping[str, object] = NOTHING) -> Any:
    # Values put in by the client, as an adapter's SQL may be several statements.
    cursor = psycopg.ClientCursor(conn).execute(sql.encode(), values or None)
    row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None

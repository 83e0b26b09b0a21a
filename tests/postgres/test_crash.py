"""The server killed with kill -9 at the worst moment."""

import os
import signal
from pathlib import Path
from typing import Any

import asyncpg

from ostinato import enqueue, store
from ostinato.embedded import EmbeddedPostgres
from ostinato.lifecycle import State
from ostinato.migrations import migrate, read_migrations
from tests.postgres.actors import hire

# Nothing but the log's writer flushes what did not wait for the disk, and that one sleeps.
SETTINGS = {"wal_writer_delay": "10s", "autovacuum": "off"}


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def crash(server: EmbeddedPostgres) -> None:
    """All of the server at once, as when the machine loses power, but for what the kernel already has."""
    pids = [server.pid, *children_of(server.pid)]
    for signal_ in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, signal_)


async def test_a_claim_that_the_server_forgot_is_as_if_it_had_never_been(folder: Path) -> None:
    """A claim does not wait for the disk. If it is lost, the job waits again, and whoever had it is refused."""
    data_dir = folder / "crash"
    with EmbeddedPostgres(data_dir, settings=SETTINGS) as server:
        conn: Any = await asyncpg.connect(server.dsn)
        await migrate(conn, read_migrations())
        made = await enqueue(conn, "work")
        kept = await enqueue(conn, "work", queue="kept")
        first = await hire(conn, queues=["default", "kept"])
        writer = await conn.fetchval("select pid from pg_stat_activity where backend_type = 'walwriter'")
        os.kill(writer, signal.SIGSTOP)
        taken = await first.claim(2)
        assert {job.id for job in taken} == {made.id, kept.id}
        await crash(server)

    with EmbeddedPostgres(data_dir, settings=SETTINGS) as server:
        conn = await asyncpg.connect(server.dsn)
        found = await store.get_job(conn, made.id)
        lost = await store.complete(conn, taken)
        second = await hire(conn, queues=["default", "kept"])
        again = await second.claim(2)
        lost_to_another = await store.complete(conn, taken)
        done = await store.complete(conn, again)
        await conn.close()

    assert (found.state, found.attempt) == (State.PENDING, 0)
    assert lost == lost_to_another == {made.id, kept.id}
    assert [job.attempt for job in again] == [1, 1]
    assert done == set()

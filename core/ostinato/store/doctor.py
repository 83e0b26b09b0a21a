"""Facts about a database that decide whether jobs run well on it. Judged by `ostinato.health`."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol
from uuid import uuid4

from ostinato.store.statements import Connection, load

SQL: Final = load("doctor")
MOST_DAYS: Final = 30
ROUNDS: Final = 8


class ListeningConnection(Connection, Protocol):
    def get_server_pid(self) -> int: ...
    async def add_listener(self, channel: str, callback: Any) -> None: ...
    async def remove_listener(self, channel: str, callback: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Server:
    version: int  # 150004 is 15.4
    autovacuum: bool
    track_counts: bool
    jit: bool
    user: str
    standby: bool
    read_only: bool  # unless a transaction says otherwise
    sees_all: bool  # other users' transactions as well


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    live: int
    dead: int
    vacuumed_at: datetime | None
    excluded: bool  # from autovacuum, by a setting of the table


@dataclass(frozen=True, slots=True)
class Pin:
    """Something that holds the xmin horizon. Of a replication slot nobody knows since when."""

    kind: str
    name: str
    transactions: int
    lasts: timedelta | None
    who: str
    query: str | None


@dataclass(frozen=True, slots=True)
class Pooler:
    """`between` us and the server there is something; `shared`: two clients of it met the same server process."""

    between: bool
    shared: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A queue in which jobs wait though they are due."""

    namespace: str
    queue: str
    ready: int
    oldest: timedelta
    workers: int


@dataclass(frozen=True, slots=True)
class Lost:
    workers: int
    silent: timedelta | None
    jobs: int


async def clock(conn: Connection) -> datetime:
    """The database's own time."""
    at: datetime = await SQL["clock"].fetchval(conn)
    return at


async def look_at_server(conn: Connection) -> Server:
    return Server(**await SQL["look_at_server"].fetchrow(conn))


async def look_at_pooler(one: ListeningConnection, other: ListeningConnection) -> Pooler:
    """A pooler makes up the process id that it tells a new client, so it differs from the one that answers.

    If two clients, both connected, are answered by one process, the pooler lends it out per transaction.
    """
    pids = [(await SQL["backend"].fetchval(one), await SQL["backend"].fetchval(other)) for _ in range(ROUNDS)]
    ones, others = {pid for pid, _ in pids}, {pid for _, pid in pids}
    between = ones != {one.get_server_pid()}
    return Pooler(between, between and bool(ones & others or len(ones) > 1 or len(others) > 1))


async def look_at_notifications(listener: ListeningConnection, sender: Connection, *, patience: float) -> float | None:
    """How many seconds a notification took from `sender` to `listener`; None if it did not arrive."""
    channel, heard = f"ostinato_doctor_{uuid4().hex}", asyncio.Event()

    def hear(*_: object) -> None:
        heard.set()

    await listener.add_listener(channel, hear)
    began = asyncio.get_running_loop().time()
    await SQL["notify"].execute(sender, channel=channel, payload="")
    try:
        await asyncio.wait_for(heard.wait(), patience)
    except TimeoutError:
        return None
    finally:
        await listener.remove_listener(channel, hear)
    return asyncio.get_running_loop().time() - began


async def look_at_tables(conn: Connection) -> list[Table]:
    return [Table(**row) for row in await SQL["look_at_tables"].fetch(conn)]


async def look_at_horizon(conn: Connection) -> list[Pin]:
    return [Pin(**row) for row in await SQL["look_at_horizon"].fetch(conn)]


async def look_at_partitions(conn: Connection) -> int:
    """For how many days after today history has a place, 30 at the most."""
    days: int = await SQL["look_at_partitions"].fetchval(conn, most=MOST_DAYS)
    return days


async def look_at_queues(conn: Connection, *, limit: int = 1_000) -> list[Line]:
    return [Line(**row) for row in await SQL["look_at_queues"].fetch(conn, limit=limit)]


async def look_at_lost(conn: Connection) -> Lost:
    return Lost(**await SQL["look_at_lost"].fetchrow(conn))

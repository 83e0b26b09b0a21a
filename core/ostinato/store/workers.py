"""Workers: they register, renew their lease, and end, by their own word or because the lease ran out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from pydantic_core import from_json

from ostinato.store.job import Held
from ostinato.store.statements import Connection, load

SQL: Final = load("workers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much of a type may go on in the whole cluster: so many at once, so many starts in a time."""

    max_running: int | None = None
    rate: float | None = None  # starts per second
    burst: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobType:
    """What a worker says of a type that it serves."""

    name: str
    version: int = 1
    queue: str | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None
    payload_schema: dict[str, Any] | None = None
    limit: Limit | None = None

    @property
    def served(self) -> str:
        """How claims and the workers table call it."""
        return self.name if self.version == 1 else f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorker:
    namespace: str
    queues: Sequence[str]
    job_types: Sequence[JobType] = ()
    concurrency: int = 1
    pool: str | None = None
    pod: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Renewal:
    """`limited`: those of its types that have a limit, whoever said so. `cancelled`: its jobs that were called off."""

    draining: bool
    limited: list[str]
    cancelled: list[UUID]


@dataclass(frozen=True, slots=True)
class Worker:
    id: UUID
    namespace: str
    pool: str | None
    pod: str | None
    queues: list[str]
    job_types: list[str]
    concurrency: int
    info: dict[str, Any]
    started_at: datetime
    lease_expires_at: datetime
    draining_at: datetime | None
    ended_at: datetime | None
    running: int


async def register_worker(conn: Connection, worker: NewWorker, *, lease: timedelta) -> UUID:
    """Say what it serves, then that it is there: whoever sees the worker also sees its types and limits."""
    await _register_job_types(conn, worker)
    await _register_limits(conn, worker)
    worker_id: UUID = await SQL["register_worker"].fetchval(
        conn,
        namespace=worker.namespace,
        pool=worker.pool,
        pod=worker.pod,
        queues=list(worker.queues),
        job_types=[job_type.served for job_type in worker.job_types],
        limited=[job_type.name for job_type in worker.job_types if job_type.limit],
        concurrency=worker.concurrency,
        info=json.dumps(dict(worker.info)),
        lease=lease,
    )
    return worker_id


async def renew_worker(conn: Connection, worker_id: UUID, *, lease: timedelta) -> Renewal | None:
    """Hold the lease for longer. None: the worker was declared dead and holds nothing any more."""
    row = await SQL["renew_worker"].fetchrow(conn, id=worker_id, lease=lease)
    return None if row is None else Renewal(row["draining"], list(row["limited"]), list(row["cancelled"]))


async def mark_idle(conn: Connection, worker_id: UUID, *, idle: bool) -> None:
    """Whether the worker waits for a notification. Look once more after saying yes: a job may have come before."""
    await SQL["mark_idle"].execute(conn, id=worker_id, idle=idle)


async def drain_workers(conn: Connection, worker_ids: Sequence[UUID]) -> set[UUID]:
    """Let them finish what they run and claim nothing more."""
    return {row["id"] for row in await SQL["drain_workers"].fetch(conn, ids=list(worker_ids))}


async def retire_workers(conn: Connection, worker_ids: Sequence[UUID]) -> set[UUID]:
    """They are gone: what they still held can be recovered at once."""
    return {row["id"] for row in await SQL["retire_workers"].fetch(conn, ids=list(worker_ids))}


async def expire_workers(conn: Connection) -> set[UUID]:
    """Declare dead whose lease ran out by the database's clock."""
    return {row["id"] for row in await SQL["expire_workers"].fetch(conn)}


async def list_workers(conn: Connection, *, namespace: str | None = None, pool: str | None = None) -> list[Worker]:
    asked = {"namespace": namespace, "pool": pool}
    given = {name: value for name, value in asked.items() if value is not None}
    rows = await SQL.choices["list_workers"].given(frozenset(given)).fetch(conn, **given)
    return [Worker(**{**row, "info": from_json(row["info"])}) for row in rows]


async def get_worker(conn: Connection, worker_id: UUID) -> Worker | None:
    """Also one that has ended; None once it is forgotten."""
    row = await SQL["get_worker"].fetchrow(conn, id=worker_id)
    return None if row is None else Worker(**{**row, "info": from_json(row["info"])})


async def find_claims(conn: Connection, worker_id: UUID) -> list[Held]:
    """All that the worker holds, whether it heard of it or not."""
    return [Held(row["id"], row["lease"]) for row in await SQL["find_claims"].fetch(conn, id=worker_id)]


async def find_max_attempts(conn: Connection, namespace: str, job_type: str, job_version: int) -> int | None:
    """What the workers that serve a type say of it; None if nobody said."""
    most: int | None = await SQL["find_max_attempts"].fetchval(
        conn, namespace=namespace, job_type=job_type, job_version=job_version
    )
    return most


async def _register_job_types(conn: Connection, worker: NewWorker) -> None:
    served = worker.job_types
    await SQL["register_job_types"].execute(
        conn,
        namespace=worker.namespace,
        types=[each.name for each in served],
        versions=[each.version for each in served],
        queues=[each.queue for each in served],
        max_attempts=[each.max_attempts for each in served],
        timeouts=[each.timeout for each in served],
        schemas=[None if each.payload_schema is None else json.dumps(each.payload_schema) for each in served],
    )


async def _register_limits(conn: Connection, worker: NewWorker) -> None:
    limits = {each.name: each.limit for each in worker.job_types if each.limit}
    if limits:
        await SQL["register_limits"].execute(
            conn,
            namespace=worker.namespace,
            types=list(limits),
            max_running=[limit.max_running for limit in limits.values()],
            rates=[limit.rate for limit in limits.values()],
            bursts=[limit.burst for limit in limits.values()],
        )

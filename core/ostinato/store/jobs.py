"""Looking at jobs, in whichever room they are."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from ostinato.errors import NotFound
from ostinato.lifecycle import State
from ostinato.payload import encode_object, encode_value
from ostinato.store.job import Event, Held, Job, QueueCount, readable
from ostinato.store.statements import Connection, load

SQL: Final = load("jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs; what is None does not matter. `since` and `until` are about when they were created."""

    namespace: str | None = None
    queue: str | None = None
    job_type: str | None = None
    states: Collection[State] | None = None
    error_code: str | None = None
    worker_id: UUID | None = None
    schedule_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    context: dict[str, Any] | None = None

    def parameters(self) -> dict[str, Any]:
        given = {name: value for name, value in asdict(self).items() if value is not None}
        if "states" in given:
            given["states"] = sorted(given["states"])
        if "context" in given:
            given["context"] = encode_object("context", given["context"])
        return given


EVERY_JOB: Final = JobFilter()


async def get_job(conn: Connection, job_id: UUID) -> Job:
    row = await SQL["get_job"].fetchrow(conn, id=job_id)
    if row is None:
        raise NotFound(f"there is no job {job_id}; it may have been pruned")
    return Job.read(row)


async def list_jobs(
    conn: Connection, chosen: JobFilter = EVERY_JOB, *, limit: int = 50, before: UUID | None = None
) -> list[Job]:
    """Newest first. For the next page give the last id of this one as `before`."""
    return [Job.read(row) for row in await _page(conn, "list_jobs", chosen, limit, before)]


async def list_dead_letters(
    conn: Connection, chosen: JobFilter = EVERY_JOB, *, limit: int = 50, before: UUID | None = None
) -> list[UUID]:
    """The ids alone, newest first: what redriving by a filter works through."""
    return [row["id"] for row in await _page(conn, "list_dead_letters", chosen, limit, before)]


async def _page(conn: Connection, name: str, chosen: JobFilter, limit: int, before: UUID | None) -> list[Any]:
    given = chosen.parameters() | ({"before": before} if before else {})
    return await SQL.choices[name].given(frozenset(given)).fetch(conn, limit=limit, **given)


async def count_jobs(
    conn: Connection, *, namespace: str | None = None, queues: Sequence[str] | None = None
) -> list[QueueCount]:
    """Per queue and state: live jobs and dead letters. Finished ones are history, and not counted."""
    asked = {"namespace": namespace, "queues": queues}
    given = {name: value for name, value in asked.items() if value is not None}
    rows = await SQL.choices["count_jobs"].given(frozenset(given)).fetch(conn, **given)
    return [QueueCount(**{**row, "state": State(row["state"])}) for row in rows]


async def find_lanes(conn: Connection, namespace: str, queues: Sequence[str]) -> list[tuple[str, int]]:
    """The (queue, priority) pairs in which something waits."""
    rows = await SQL["find_lanes"].fetch(conn, namespace=namespace, queues=list(queues))
    return [(row["queue"], row["priority"]) for row in rows]


async def next_run_at(
    conn: Connection, namespace: str, lines: Sequence[tuple[str, int]]
) -> tuple[datetime | None, datetime]:
    """When the next job that waits in these lines is due, or was; and the database's time."""
    row = await SQL["next_run_at"].fetchrow(
        conn, namespace=namespace, queues=[queue for queue, _ in lines], priorities=[line for _, line in lines]
    )
    return row["run_at"], row["now"]


async def emit(conn: Connection, held: Held, *, attempt: int, event: Any) -> bool:
    """Add to the story of a running job. False: the lease was lost, and nothing was written."""
    text = encode_value("event", event)
    return await SQL["emit"].fetchval(conn, id=held.id, lease=held.lease, attempt=attempt, event=text) is not None


async def list_events(conn: Connection, job_id: UUID, *, limit: int = 1_000) -> list[Event]:
    """What its handlers had to tell, in order."""
    rows = await SQL["list_events"].fetch(conn, id=job_id, limit=limit)
    return [Event(row["at"], row["attempt"], readable(row["event"])) for row in rows]

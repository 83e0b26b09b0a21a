"""`ostinato jobs`: look at jobs, call them off, run them now."""

from typing import Any
from uuid import UUID

import click

from ostinato import store
from ostinato.errors import NotPossible, OstinatoError
from ostinato.lifecycle import WAITING, State
from ostinato.postgres import PostgresConnection
from ostinato.settings import Settings
from ostinato.store import Cancellation, Job
from ostinato_cli.database import with_connection
from ostinato_cli.document import job_document, show_json
from ostinato_cli.exits import DONE, NOT_DONE
from ostinato_cli.job_list import show_jobs
from ostinato_cli.job_page import JobPage, enqueue_again
from ostinato_cli.options import job_id_argument, job_ids_argument, output_option
from ostinato_cli.selection import page_options, select, selection_options

SAID = {
    Cancellation.CANCELLED: "cancelled",
    Cancellation.ASKED: "asked to stop: it runs, and ends when its handler does",
    Cancellation.FINISHED: "not cancelled: it had finished already",
}


@click.group()
def jobs() -> None:
    """Look at jobs, call them off, run them now."""


@jobs.command("list")
@selection_options
@click.option(
    "--state", "states", multiple=True, type=click.Choice([str(state) for state in State]), help="May be given again."
)
@page_options
@output_option
@with_connection
async def list_jobs(
    settings: Settings, conn: PostgresConnection, *, limit: int, before: UUID | None, output: str, **filters: Any
) -> None:
    """List jobs, newest first: live, finished and dead-lettered ones.

    \b
    Examples:
      ostinato jobs list --state running
      ostinato jobs list -A --code TIMEOUT --since 1h
      ostinato jobs list --context '{"tenant": "acme"}' -o json | jq '.[].id'
    """
    now = await store.clock(conn)
    chosen = select(settings, now, **filters)
    found = await store.list_jobs(conn, chosen, limit=limit, before=before)
    show_jobs(found, now, output=output, limit=limit, namespaces=filters["all_namespaces"])


@jobs.command("show")
@job_id_argument
@output_option
@with_connection
async def show_job(settings: Settings, conn: PostgresConnection, *, job_id: UUID, output: str) -> None:
    """Show one job: its state, its errors, who runs it, and what can be done next.

    \b
    Example:
      ostinato jobs show 0199a5b0-7c1e-7d3a-9a55-3f2f6d1c8e42
    """
    job = await store.get_job(conn, job_id)
    if output == "json":
        show_json(job_document(job))
    else:
        (await read_page(settings, conn, job)).show()


async def read_page(settings: Settings, conn: PostgresConnection, job: Job) -> JobPage:
    ids = {job.worker_id, *(attempt.worker for attempt in job.attempts)} - {None}
    workers = {worker_id: await store.get_worker(conn, worker_id) for worker_id in ids if worker_id}
    of_type = await store.find_max_attempts(conn, job.namespace, job.job_type, job.job_version)
    known = {worker_id: worker for worker_id, worker in workers.items() if worker}
    most = job.max_attempts or of_type or settings.max_attempts
    return JobPage(job, await store.clock(conn), known, most)


@jobs.command("cancel")
@job_ids_argument
@click.option("--reason", help="Kept with the job as its error message.")
@with_connection
async def cancel_jobs(
    settings: Settings, conn: PostgresConnection, *, job_ids: tuple[UUID, ...], reason: str | None
) -> int:
    """Call jobs off: at once if they wait; if they run, their worker is asked to stop them.

    \b
    Example:
      ostinato jobs cancel 0199a5b0-7c1e-7d3a-9a55-3f2f6d1c8e42 --reason 'wrong customer'
    """
    failed = 0
    for job_id in job_ids:
        try:
            outcome = await store.cancel(conn, job_id, reason=reason)
        except OstinatoError as error:
            failed += _refused(error)
            continue
        click.echo(f"{job_id} {SAID[outcome]}")
        failed += outcome is Cancellation.FINISHED
    return NOT_DONE if failed else DONE


@jobs.command("retry")
@job_ids_argument
@with_connection
async def retry_jobs(settings: Settings, conn: PostgresConnection, *, job_ids: tuple[UUID, ...]) -> int:
    """Run jobs now: one that waits for its time, or a dead letter.

    A dead letter gets one more attempt; `ostinato dead-letters retry` has more ways.

    \b
    Example:
      ostinato jobs retry 0199a5b0-7c1e-7d3a-9a55-3f2f6d1c8e42
    """
    failed = 0
    for job_id in job_ids:
        try:
            click.echo(f"{job_id} {await _retry(conn, job_id)}")
        except OstinatoError as error:
            failed += _refused(error)
    return NOT_DONE if failed else DONE


def _refused(error: OstinatoError) -> int:
    click.echo(f"Error: {error}", err=True)
    return 1


async def _retry(conn: PostgresConnection, job_id: UUID) -> str:
    job = await store.get_job(conn, job_id)
    if job.state in WAITING:
        await store.hasten(conn, job_id)
        return "runs as soon as a worker is free"
    if job.state is State.DEAD_LETTERED and await store.redrive(conn, [job_id]):
        return "is tried once more, as soon as a worker is free"
    if job.state is State.RUNNING:
        raise NotPossible(f"job {job_id} is running: to stop it, `ostinato jobs cancel {job_id}`")
    raise NotPossible(f"job {job_id} is {job.state} and done with; to do the same again: {enqueue_again(job)}")

"""`ostinato dead-letters`: jobs that will not be tried again until a person says so."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import click

from ostinato import store
from ostinato.errors import NotFound, NotPossible
from ostinato.lifecycle import State
from ostinato.postgres import PostgresConnection
from ostinato.settings import Settings
from ostinato.store import JobFilter
from ostinato_cli.database import with_connection
from ostinato_cli.document import job_document, show_json
from ostinato_cli.exits import DONE, NOT_DONE
from ostinato_cli.job_list import show_jobs
from ostinato_cli.jobs import read_page
from ostinato_cli.options import instant, job_id_argument, length, output_option
from ostinato_cli.selection import page_options, select, selection_options
from ostinato_cli.table import note

BATCH: Final = 500


@click.group("dead-letters")
def dead_letters() -> None:
    """Jobs that will not be tried again until you say so."""


@dead_letters.command("list")
@selection_options
@page_options
@output_option
@with_connection
async def list_letters(
    settings: Settings, conn: PostgresConnection, *, limit: int, before: UUID | None, output: str, **filters: Any
) -> None:
    """List dead letters, the job created last first.

    \b
    Example:
      ostinato dead-letters list --type send_email --code UPSTREAM_5XX --since 1d
    """
    now = await store.clock(conn)
    chosen = select(settings, now, states=(State.DEAD_LETTERED,), **filters)
    found = await store.list_jobs(conn, chosen, limit=limit, before=before)
    show_jobs(found, now, output=output, limit=limit, namespaces=filters["all_namespaces"])


@dead_letters.command("show")
@job_id_argument
@output_option
@with_connection
async def show_letter(settings: Settings, conn: PostgresConnection, *, job_id: UUID, output: str) -> None:
    """Show one dead letter: what went wrong, each time.

    \b
    Example:
      ostinato dead-letters show 0199a5b0-7c1e-7d3a-9a55-3f2f6d1c8e42
    """
    job = await store.get_job(conn, job_id)
    if job.state is not State.DEAD_LETTERED:
        raise NotPossible(f"job {job_id} is {job.state}, not a dead letter: `ostinato jobs show {job_id}`")
    if output == "json":
        show_json(job_document(job))
    else:
        (await read_page(settings, conn, job)).show()


@dead_letters.command("retry")
@click.argument("job_ids", metavar="[ID]...", type=click.UUID, nargs=-1)
@selection_options
@click.option("--all", "all_", is_flag=True, help="Every dead letter of the namespace: needed if nothing else is said.")
@click.option("--delay", type=length, metavar="DURATION", help="Try them after, such as 5m.")
@click.option("--at", type=instant, metavar="TIME", help="Try them at, such as 2026-01-31T09:00:00Z.")
@click.option("--reset-attempts", is_flag=True, help="With all their attempts again, instead of one more.")
@click.option("--dry-run", is_flag=True, help="Only say how many.")
@with_connection
async def retry_letters(
    settings: Settings,
    conn: PostgresConnection,
    *,
    job_ids: tuple[UUID, ...],
    all_: bool,
    delay: timedelta | None,
    at: datetime | None,
    reset_attempts: bool,
    dry_run: bool,
    **filters: Any,
) -> int:
    """Try dead letters again: those of the given IDs, or those that the filters choose.

    \b
    Examples:
      ostinato dead-letters retry 0199a5b0-7c1e-7d3a-9a55-3f2f6d1c8e42
      ostinato dead-letters retry --type send_email --since 2h --dry-run
      ostinato dead-letters retry --all --delay 10m --reset-attempts
    """
    _check(job_ids, all_, delay, at, filters)
    chosen = select(settings, await store.clock(conn), **filters)
    pages = _given(conn, job_ids) if job_ids else _chosen(conn, chosen)
    found = retried = 0
    async for page in pages:
        found += len(page)
        if not dry_run:
            retried += len(await store.redrive(conn, page, delay=delay, at=at, reset_attempts=reset_attempts))
        if len(page) == BATCH:
            note(f"{found:,} so far")
    click.echo(f"would retry {found:,} dead letters" if dry_run else f"retried {retried:,} dead letters")
    return NOT_DONE if found < len(job_ids) else DONE


def _check(
    job_ids: tuple[UUID, ...], all_: bool, delay: timedelta | None, at: datetime | None, filters: dict[str, Any]
) -> None:
    filtered = any(value is not None for name, value in filters.items() if name not in ("namespace", "all_namespaces"))
    if delay is not None and at is not None:
        raise click.UsageError("give --delay or --at, not both")
    if job_ids and (filtered or all_):
        raise click.UsageError("give IDs, or filters, not both")
    if not (job_ids or filtered or all_):
        raise click.UsageError("say which: IDs, a filter such as --type or --since, or --all for every one")


async def _given(conn: PostgresConnection, job_ids: tuple[UUID, ...]) -> AsyncIterator[list[UUID]]:
    """Those of the ids that are dead letters; of the others it says why not."""
    letters = []
    for job_id in job_ids:
        try:
            job = await store.get_job(conn, job_id)
        except NotFound as error:
            note(f"Error: {error}")
            continue
        if job.state is State.DEAD_LETTERED:
            letters.append(job_id)
        else:
            note(f"Error: job {job_id} is {job.state}, not a dead letter: `ostinato jobs show {job_id}`")
    yield letters


async def _chosen(conn: PostgresConnection, chosen: JobFilter) -> AsyncIterator[list[UUID]]:
    """By pages, each below the last: one that dies again meanwhile is not tried twice."""
    before: UUID | None = None
    while page := await store.list_dead_letters(conn, chosen, limit=BATCH, before=before):
        yield page
        before = page[-1]

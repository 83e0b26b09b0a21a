"""`ostinato workers`: who works, where, and on how much."""

from dataclasses import asdict
from datetime import datetime

import click

from ostinato import store
from ostinato.postgres import PostgresConnection
from ostinato.settings import Settings
from ostinato.store import Worker
from ostinato_cli.ages import age
from ostinato_cli.database import with_connection
from ostinato_cli.document import show_json
from ostinato_cli.options import all_namespaces_option, namespace_option, output_option
from ostinato_cli.selection import find_namespace
from ostinato_cli.table import note, show_table

HEADERS = ["ID", "NAMESPACE", "POOL", "POD", "QUEUES", "RUNNING", "STATUS", "AGE"]


@click.group()
def workers() -> None:
    """See who works."""


@workers.command("list")
@namespace_option
@all_namespaces_option
@click.option("--pool", help="Of this WorkerPool.")
@output_option
@with_connection
async def list_workers(
    settings: Settings,
    conn: PostgresConnection,
    *,
    namespace: str | None,
    all_namespaces: bool,
    pool: str | None,
    output: str,
) -> None:
    """List the workers that have not ended.

    \b
    Example:
      ostinato workers list -A -o json | jq '.[] | select(.draining_at)'
    """
    now = await store.clock(conn)
    found = await store.list_workers(conn, namespace=find_namespace(settings, namespace, all_namespaces), pool=pool)
    if output == "json":
        show_json([asdict(worker) for worker in found])
    elif found:
        show_table(HEADERS, [_row(worker, now) for worker in found])
    else:
        note("no workers found")


def _row(worker: Worker, now: datetime) -> list[str]:
    who = [str(worker.id), worker.namespace, worker.pool or "", worker.pod or "", ",".join(worker.queues)]
    return [*who, f"{worker.running}/{worker.concurrency}", status(worker, now), age(worker.started_at, now)]


def status(worker: Worker, now: datetime) -> str:
    if worker.lease_expires_at <= now:
        return f"silent for {age(worker.lease_expires_at, now)}"
    return "draining" if worker.draining_at else "live"

"""`ostinato enqueue`: put one job in."""

import sys
from pathlib import Path
from typing import Any

import click

import ostinato
from ostinato.postgres import PostgresConnection
from ostinato.settings import Settings
from ostinato_cli.database import with_connection
from ostinato_cli.document import show_json
from ostinato_cli.options import instant, json_object, length, namespace_option, output_option


@click.command()
@click.argument("job_type", metavar="TYPE")
@click.option(
    "-p", "--payload", type=json_object, metavar="JSON", help="What the handler gets: a JSON object. Default: {}."
)
@click.option(
    "--payload-file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="The same from a file, or - for standard input.",
)
@namespace_option
@click.option("--queue", help="The line it waits in. Default: default.")
@click.option("--priority", type=int, help="Higher ones first. Default: 0.")
@click.option("--delay", type=length, metavar="DURATION", help="Run it after, such as 5m.")
@click.option("--run-at", type=instant, metavar="TIME", help="Run it at, such as 2026-01-31T09:00:00Z.")
@click.option("--dedup-key", metavar="KEY", help="At most one live job of its type has this key.")
@click.option(
    "--dedup",
    type=click.Choice(["skip", "enqueue", "replace"]),
    help="What to do if there is one. Default: skip.",
)
@click.option("--idempotency-key", metavar="KEY", help="The same key gives the same job for a day, finished or not.")
@click.option("--concurrency-key", metavar="KEY", help="Of the jobs of one key, one runs at a time.")
@click.option("--max-attempts", type=int, help="Instead of what its type says.")
@click.option("--timeout", type=length, metavar="DURATION", help="Instead of what its type says.")
@click.option("--context", type=json_object, metavar="JSON", help="To find it by: trace id, tenant, ….")
@click.option("--job-version", type=int, help="Of its type. Default: 1.")
@output_option
@with_connection
async def enqueue(
    settings: Settings,
    conn: PostgresConnection,
    *,
    job_type: str,
    payload: dict[str, Any] | None,
    payload_file: str | None,
    namespace: str | None,
    output: str,
    **options: Any,
) -> None:
    """Enqueue a job of TYPE.

    Prints the job's id, and whether it was created or an earlier one of the same key stands for it.

    \b
    Examples:
      ostinato enqueue send_email --payload '{"to": "a@example.com"}'
      ostinato enqueue report --delay 1h30m --queue slow --dedup-key daily
      generate | ostinato enqueue import_order --payload-file - -o json
    """
    payload = _read_payload(payload, payload_file)
    options["namespace"] = settings.namespace if namespace is None else namespace
    made = await ostinato.enqueue(conn, job_type, payload, **options)
    if output == "json":
        show_json(made._asdict())
    else:
        click.echo(f"{made.id} {'created' if made.created else 'exists already, by its key'}")


def _read_payload(payload: dict[str, Any] | None, file: str | None) -> dict[str, Any] | None:
    if file is None:
        return payload
    if payload is not None:
        raise click.UsageError("give --payload or --payload-file, not both")
    text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return json_object(text)

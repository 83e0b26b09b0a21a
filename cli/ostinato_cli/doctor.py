"""`ostinato doctor`: is this database fit for jobs, and what to do if not."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Final

import click

from ostinato import health, migrations
from ostinato.dsn import Dsn
from ostinato.errors import InvalidArgument, MigrationError, Unreachable
from ostinato.health import Finding, Verdict
from ostinato.postgres import Forbidden, PostgresConnection, connect, settle
from ostinato.settings import Settings
from ostinato.store import doctor as facts
from ostinato_cli.database import dsn_option, find_dsn
from ostinato_cli.document import show_json
from ostinato_cli.exits import DONE, NO_DATABASE, NOT_DONE
from ostinato_cli.options import output_option
from ostinato_cli.table import plain

PATIENCE: Final = 3.0
COLORS: Final = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "red"}


@click.command()
@dsn_option
@output_option
@click.pass_obj
def doctor(settings: Settings, dsn: str | None, output: str) -> int:
    """Check the database: connection, version, schema, clock, notifications, pooler, vacuum, and whether work is done.

    Each check says ok, warn or fail, what it saw, and what to do. Changes nothing. The exit code is 1 if a check
    failed, 3 if the database cannot be reached; warnings alone are 0.

    \b
    Examples:
      ostinato doctor
      ostinato doctor -o json | jq '.[] | select(.verdict != "ok")'
    """
    findings = asyncio.run(examine(settings, find_dsn(settings, dsn)))
    if output == "json":
        show_json([asdict(finding) for finding in findings])
    else:
        _show(findings)
    if findings[0].verdict is Verdict.FAIL:
        return NO_DATABASE
    return NOT_DONE if any(finding.verdict is Verdict.FAIL for finding in findings) else DONE


def _show(findings: Sequence[Finding]) -> None:
    for finding in findings:
        verdict = click.style(f"{finding.verdict:4}", fg=COLORS[finding.verdict])
        click.echo(f"{verdict}  {finding.check:13}  {plain(finding.saw)}")
        if finding.advice:
            click.echo(f"{'':21}→ {finding.advice}")


async def examine(settings: Settings, dsn: Dsn) -> list[Finding]:
    """The first finding is about the connection; without one there are no others."""
    try:
        dsn = await settle(dsn)
    except Unreachable as error:
        return [Finding("connection", Verdict.FAIL, str(error), "without a connection nothing else can be checked")]
    # As if behind PgBouncer, so that one that nobody told us of is found instead of stumbled over.
    careful = replace(dsn, pgbouncer=True)
    async with connect(careful) as conn, connect(careful) as other:
        first = Finding("connection", Verdict.OK, str(dsn))
        return [first, *await _server(settings, dsn, conn, other), *await _work(conn)]


async def _server(settings: Settings, dsn: Dsn, conn: PostgresConnection, other: PostgresConnection) -> list[Finding]:
    server = await facts.look_at_server(conn)
    before, at, after = datetime.now(UTC), await facts.clock(conn), datetime.now(UTC)
    pooler = await facts.look_at_pooler(conn, other)
    listens = settings.listen_dsn is not None
    return [
        health.judge_version(server),
        health.judge_clock(before, at, after),
        health.judge_pooler(pooler, server, flagged=dsn.pgbouncer, own_listen_dsn=listens),
        await _notifications(settings, conn, other, deaf=pooler.shared and not listens),
        health.judge_autovacuum(server, await facts.look_at_tables(conn)),
        health.judge_horizon(await facts.look_at_horizon(conn), server),
    ]


async def _notifications(
    settings: Settings, sender: PostgresConnection, other: PostgresConnection, *, deaf: bool
) -> Finding:
    """`deaf`: not even tried, since the LISTEN would stay behind on a server that the pooler lends to others."""
    if deaf:
        return health.judge_notifications(None, own_dsn=False)
    try:
        async with _listener(settings, other) as listener:
            seconds = await facts.look_at_notifications(listener, sender, patience=PATIENCE)
    except (Unreachable, InvalidArgument) as error:
        return Finding("notifications", Verdict.FAIL, str(error), "correct OSTINATO_LISTEN_DSN, or unset it")
    return health.judge_notifications(seconds, own_dsn=settings.listen_dsn is not None)


@asynccontextmanager
async def _listener(settings: Settings, other: PostgresConnection) -> AsyncIterator[PostgresConnection]:
    if settings.listen_dsn is None:
        yield other
    else:
        async with connect(Dsn.parse(settings.listen_dsn)) as listener:
            yield listener


async def _work(conn: PostgresConnection) -> list[Finding]:
    """What the schema holds can be looked at once it is there."""
    try:
        files = migrations.read_migrations()
        pending = await migrations.pending(conn, files)
    except Forbidden as error:
        return [
            Finding("permissions", Verdict.FAIL, str(error), "grant this user usage on schema ostinato and its tables")
        ]
    except MigrationError as error:
        return [Finding("schema", Verdict.FAIL, str(error), "use the ostinato that migrated it, or a later one")]
    schema = health.judge_schema([str(migration) for migration in pending], len(files))
    if pending:
        return [schema]
    try:
        return [
            schema,
            health.judge_partitions(await facts.look_at_partitions(conn)),
            health.judge_queues(await facts.look_at_queues(conn)),
            health.judge_lost(await facts.look_at_lost(conn)),
        ]
    except Forbidden as error:
        advice = (
            "grant this user select, insert, update and delete on all tables in schema ostinato, or use their owner"
        )
        return [schema, Finding("permissions", Verdict.FAIL, str(error), advice)]

"""`ostinato demo`: a job's life in the terminal, on a database of our own."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from ostinato import migrations
from ostinato.dsn import Dsn
from ostinato.embedded import EmbeddedPostgres, default_data_dir
from ostinato.postgres import connect
from ostinato.settings import Settings
from ostinato_cli.story import Story


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the embedded PostgreSQL keeps its data. Default: a folder of this project.",
)
@click.option("--dsn", metavar="URL", help="Use this database instead of an embedded one.")
@click.pass_obj
def demo(settings: Settings, data: Path | None, dsn: str | None) -> None:
    """Show a job's life, step by step, on an embedded PostgreSQL.

    Nothing has to be installed or running. The data stays, so that a second run is faster; it is not your database,
    not even if OSTINATO_DSN is set. With --dsn it is: then what the demo did remains in the namespace `demo`.

    \b
    Examples:
      ostinato demo
      ostinato demo --dsn postgresql://me@localhost/test
    """
    if data is not None and dsn is not None:
        raise click.UsageError("give --data or --dsn, not both")
    with _database(settings, data, dsn) as database:
        asyncio.run(_tell(settings, database))


@contextlib.contextmanager
def _database(settings: Settings, data: Path | None, dsn: str | None) -> Iterator[Dsn]:
    if dsn is not None:
        yield Dsn.parse(dsn, pgbouncer=settings.pgbouncer)
        return
    data = data or default_data_dir(Path.cwd())
    click.echo(f"Starting PostgreSQL on {data} …")
    with EmbeddedPostgres(data) as server:
        yield Dsn.parse(server.dsn)


async def _tell(settings: Settings, dsn: Dsn) -> None:
    async with connect(dsn) as conn:
        applied = await migrations.migrate(conn, migrations.read_migrations())
        click.echo(f"Migrated: {len(applied)} files applied." if applied else "The schema is up to date.")
        await Story(conn, settings).tell()

"""`ostinato migrate`: bring the database to the schema of this version."""

import asyncio
from functools import partial

import click

from ostinato import migrations
from ostinato.dsn import Dsn
from ostinato.migrations import Migration
from ostinato.postgres import connect
from ostinato.settings import Settings
from ostinato_cli.database import dsn_option, find_dsn
from ostinato_cli.document import show_json
from ostinato_cli.options import output_option
from ostinato_cli.table import note


@click.command()
@dsn_option
@click.option("--dry-run", is_flag=True, help="Say what would be applied, and change nothing.")
@click.option("--print", "print_", is_flag=True, help="Print the SQL, to be applied by other means.")
@output_option
@click.pass_obj
def migrate(settings: Settings, dsn: str | None, dry_run: bool, print_: bool, output: str) -> None:
    """Bring the database to the schema of this version.

    Each migration is applied once, in order, in its own transaction; two migrators at once are harmless, and so is
    doing it again. --print prints what the database lacks; without a database, everything.

    \b
    Examples:
      ostinato migrate --dry-run
      ostinato migrate
      ostinato migrate --print > schema.sql
    """
    if dry_run and print_:
        raise click.UsageError("give --dry-run or --print, not both")
    if print_ and not (dsn or settings.dsn):
        click.echo(migrations.script(migrations.read_migrations()), nl=False)
        return
    found = asyncio.run(_migrate(find_dsn(settings, dsn), look_only=dry_run or print_))
    if print_:
        _print(found)
    elif output == "json":
        show_json({"pending" if dry_run else "applied": [str(migration) for migration in found]})
    else:
        _report(found, "would apply" if dry_run else "applied")


async def _migrate(dsn: Dsn, *, look_only: bool) -> list[Migration]:
    files = migrations.read_migrations()
    async with connect(dsn) as conn:
        if look_only:
            return await migrations.pending(conn, files)
        return await migrations.migrate(conn, files, aside=partial(connect, dsn))


def _print(found: list[Migration]) -> None:
    if found:
        click.echo(migrations.script(found), nl=False)
    else:
        note("nothing to print: the schema is up to date")


def _report(found: list[Migration], done: str) -> None:
    for migration in found:
        click.echo(f"{done} {migration}")
    if not found:
        click.echo("nothing to do: the schema is up to date")

"""Gives a command its database: the option --dsn, a connection, and an event loop to run in."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Final

import click

from ostinato.dsn import Dsn
from ostinato.postgres import connect
from ostinato.settings import Settings

Command = Callable[..., Coroutine[Any, Any, int | None]]

dsn_option: Final = click.option(
    "--dsn",
    metavar="URL",
    help="The database. Better in OSTINATO_DSN: others can see a command's arguments.",
)


def with_connection(command: Command) -> Callable[..., int | None]:
    """The command gets the settings and a connection first, then its own options."""

    @dsn_option
    @click.pass_obj
    @functools.wraps(command)
    def run(settings: Settings, /, dsn: str | None, **options: Any) -> int | None:
        return asyncio.run(_run(command, settings, find_dsn(settings, dsn), options))

    return run


async def _run(command: Command, settings: Settings, dsn: Dsn, options: dict[str, Any]) -> int | None:
    async with connect(dsn) as conn:
        return await command(settings, conn, **options)


def find_dsn(settings: Settings, given: str | None) -> Dsn:
    text = given or settings.dsn
    if not text:
        raise click.UsageError(
            "no database: give --dsn or set OSTINATO_DSN, such as postgresql://user:password@host:5432/database\n"
            "(`ostinato demo` needs none)"
        )
    return Dsn.parse(text, pgbouncer=settings.pgbouncer)

"""All commands under one name, and what becomes of their errors: a sentence and an exit code, never a traceback."""

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

import ostinato
from ostinato.errors import EmbeddedPostgresError, InvalidArgument, NotMigrated, OstinatoError, Unreachable
from ostinato.settings import Settings
from ostinato_cli.cron import cron
from ostinato_cli.dead_letters import dead_letters
from ostinato_cli.demo import demo
from ostinato_cli.doctor import doctor
from ostinato_cli.enqueue import enqueue
from ostinato_cli.exits import BAD_USAGE, NO_DATABASE, NOT_DONE, PIPE_CLOSED
from ostinato_cli.jobs import jobs
from ostinato_cli.main import INTERRUPTED
from ostinato_cli.migrate import migrate
from ostinato_cli.queues import queues
from ostinato_cli.worker import worker
from ostinato_cli.workers import workers

CODES: dict[type[OstinatoError], int] = {
    InvalidArgument: BAD_USAGE,
    Unreachable: NO_DATABASE,
    NotMigrated: NO_DATABASE,
    EmbeddedPostgresError: NO_DATABASE,
    OstinatoError: NOT_DONE,
}


class Commands(click.Group):
    """In the order of a person's first day, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            _say_no_more()
            return PIPE_CLOSED
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise
            _say_no_more()
            reason = f"cannot write the answer: {error.strerror}; make room, or write it elsewhere"
            raise click.ClickException(reason) from None


def _say_no_more() -> None:
    """`| head` has seen enough, or the disk is full: what Python would flush at its end goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(ostinato.__version__, prog_name="ostinato")
@click.pass_context
def commands(ctx: click.Context) -> None:
    """Recurring and one-off jobs on Postgres.

    The database is the one of --dsn, else of OSTINATO_DSN. Put ?pgbouncer=true behind a DSN that leads to PgBouncer in
    transaction mode (or set OSTINATO_PGBOUNCER=true), and give a direct one as OSTINATO_LISTEN_DSN.

    \b
    Try it:
      ostinato demo
      export OSTINATO_DSN=postgresql://me@db.example.com/shop
      ostinato migrate
      ostinato enqueue send_email --payload '{"to": "a@example.com"}'
      ostinato jobs list
      ostinato worker --jobs shop.jobs

    \b
    Exit codes:
      0    done
      1    it did not happen: no such job, not possible, or doctor found a problem
      2    the command was wrong: an argument breaks a rule
      3    the database cannot be reached, or is not migrated
      130  interrupted by Ctrl-C
    """
    ctx.obj = Settings.from_env()


for command in (migrate, enqueue, worker, jobs, dead_letters, queues, workers, cron, doctor, demo):
    commands.add_command(command)


def run(arguments: Sequence[str]) -> int:
    try:
        return commands.main(list(arguments), prog_name="ostinato", standalone_mode=False) or 0
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except OstinatoError as error:
        click.echo(f"Error: {error}", err=True)
        return next(code for kind, code in CODES.items() if isinstance(error, kind))

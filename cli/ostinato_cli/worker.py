"""`ostinato worker`: run jobs."""

import os
import signal
from datetime import timedelta
from typing import NoReturn

import click

from ostinato.settings import Settings
from ostinato_cli.database import dsn_option, find_dsn
from ostinato_cli.exits import DONE
from ostinato_cli.options import length, namespace_option, output_option

PORT = click.IntRange(0, 65_535)


def names(texts: tuple[str, ...]) -> list[str]:
    """Of an option that may be repeated, and name several at once."""
    return [name for text in texts for part in text.split(",") if (name := part.strip())]


def _leave(*_: object) -> NoReturn:
    os._exit(DONE)


@click.command()
@click.option(
    "-j",
    "--jobs",
    multiple=True,
    metavar="MODULE",
    help="Modules that hold handlers, found from the current folder on; a package with all its modules. "
    "Default: what installed packages offer as entry points of the group ostinato.jobs.",
)
@click.option("-q", "--queues", multiple=True, metavar="NAMES", help="Which lines to serve. Default: default.")
@click.option("-c", "--concurrency", type=click.IntRange(1, 32_767), default=8, show_default=True, help="Jobs at once.")
@namespace_option
@click.option("--pool", metavar="NAME", help="The WorkerPool it belongs to. Default: OSTINATO_POOL.")
@click.option("--pod", metavar="NAME", help="The pod it is. Default: OSTINATO_POD.")
@click.option(
    "--state",
    metavar="MODULE:NAME",
    help="What the application opens and closes: a function without arguments that returns an async context manager. "
    "What that yields is ctx.state.",
)
@click.option(
    "--timeout", type=length, metavar="DURATION", help="Of attempts for which nobody said one. Default: none."
)
@click.option(
    "--grace",
    type=length,
    default="25s",
    show_default=True,
    metavar="DURATION",
    help="All that it may take from SIGTERM to the exit code: less than Kubernetes waits before it kills (30s).",
)
@click.option(
    "--stop-grace",
    type=length,
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="How long a job may take to stop after it was told to: when it is called off, when its time is up, and this "
    "long before the end of the grace (at most half of it).",
)
@click.option("--drain", is_flag=True, help="Run what is due now, say what became of it, and end.")
@click.option("--builtin", is_flag=True, help="Serve the built-in types http, sql and log too.")
@click.option("--health-port", type=PORT, metavar="PORT", help="Answer /livez, /readyz and /metrics. 0: any free port.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
@output_option
@dsn_option
@click.pass_obj
def worker(
    settings: Settings,
    *,
    jobs: tuple[str, ...],
    queues: tuple[str, ...],
    concurrency: int,
    namespace: str | None,
    pool: str | None,
    pod: str | None,
    state: str | None,
    timeout: timedelta | None,
    grace: timedelta,
    stop_grace: timedelta,
    drain: bool,
    builtin: bool,
    health_port: int | None,
    log_format: str,
    log_level: str,
    output: str,
    dsn: str | None,
) -> int:
    """Run the jobs of the types that your modules handle.

    SIGTERM or Ctrl-C ends it: it claims nothing more, lets what runs finish, tells the rest to stop in time for the end
    of the grace, and gives it back without spending an attempt. A second one ends what runs at once. The log goes to
    standard error.

    \b
    Examples:
      ostinato worker --jobs shop.jobs
      ostinato worker --jobs shop.jobs --queues emails,default --concurrency 50 --health-port 8080 --log-format json
      ostinato worker --jobs shop.jobs --drain
    """
    # Until it runs there is nothing to give back. By default it would be a failure; for process 1, nothing at all.
    signal.signal(signal.SIGTERM, _leave)
    try:
        # Only here: whoever just enqueues or looks has not installed what a worker needs.
        from ostinato_cli import shift
    except ModuleNotFoundError as error:
        raise click.UsageError(f"this needs {error.name}: pip install 'ostinato[worker]'") from None
    return shift.work(
        settings,
        find_dsn(settings, dsn),
        shift.Orders(
            jobs=names(jobs),
            builtin=builtin,
            state=state,
            drain=drain,
            output=output,
            log_format="json" if log_format == "json" else "text",
            log_level=log_level,
            options={
                "queues": names(queues) or ["default"],
                "concurrency": concurrency,
                "namespace": namespace,
                "pool": pool,
                "pod": pod,
                "timeout": timeout,
                "grace": grace,
                "stop_grace": stop_grace,
                "health_port": health_port,
            },
        ),
    )

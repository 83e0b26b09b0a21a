"""Which jobs a command is about: the filters of `jobs list`, `dead-letters list` and `dead-letters retry`."""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import click

from ostinato.errors import InvalidArgument
from ostinato.lifecycle import State
from ostinato.names import check_namespace
from ostinato.settings import Settings
from ostinato.store import JobFilter
from ostinato_cli.options import all_namespaces_option, json_object, moment, namespace_option, options

FILTERS: Final = ("queue", "type", "code", "since", "until", "worker", "context")

selection_options: Final = options(
    namespace_option,
    all_namespaces_option,
    click.option("--queue", help="In this queue."),
    click.option("--type", "type_", metavar="TYPE", help="Of this job type."),
    click.option("--code", help="Whose last error has this code, such as TIMEOUT."),
    click.option("--since", type=moment, metavar="TIME", help="Created since: 1h (ago), or 2026-01-31T09:00:00Z."),
    click.option("--until", type=moment, metavar="TIME", help="Created before: 1h (ago), or a time."),
    click.option("--worker", type=click.UUID, metavar="ID", help="That this worker runs, or ran last."),
    click.option("--context", type=json_object, metavar="JSON", help="Whose context holds all of this."),
)
page_options: Final = options(
    click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="At most so many."),
    click.option("--before", type=click.UUID, metavar="ID", help="The next page: the last id of this one."),
)


def find_namespace(settings: Settings, namespace: str | None, all_namespaces: bool) -> str | None:
    """None is all of them."""
    if all_namespaces and namespace is not None:
        raise InvalidArgument("namespace", namespace, "give --namespace or --all-namespaces, not both")
    return None if all_namespaces else check_namespace(settings.namespace if namespace is None else namespace)


def select(
    settings: Settings,
    now: datetime,
    *,
    namespace: str | None,
    all_namespaces: bool,
    queue: str | None,
    type_: str | None,
    code: str | None,
    since: datetime | timedelta | None,
    until: datetime | timedelta | None,
    worker: UUID | None,
    context: dict[str, Any] | None,
    states: tuple[str, ...] = (),
) -> JobFilter:
    """`now` is the database's: "an hour ago" must not depend on the clock of whoever asks."""
    return JobFilter(
        namespace=find_namespace(settings, namespace, all_namespaces),
        queue=queue,
        job_type=type_,
        states=[State(state) for state in states] or None,
        error_code=code,
        since=_moment(since, now),
        until=_moment(until, now),
        worker_id=worker,
        context=context,
    )


def _moment(given: datetime | timedelta | None, now: datetime) -> datetime | None:
    return now - given if isinstance(given, timedelta) else given

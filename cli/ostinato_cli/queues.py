"""`ostinato queues`: how many jobs each queue holds, and how long the oldest has waited."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import Any

import click

from ostinato import store
from ostinato.durations import format_duration
from ostinato.lifecycle import State
from ostinato.postgres import PostgresConnection
from ostinato.settings import Settings
from ostinato.store import QueueCount
from ostinato_cli.database import with_connection
from ostinato_cli.document import show_json
from ostinato_cli.options import all_namespaces_option, namespace_option, output_option
from ostinato_cli.selection import find_namespace
from ostinato_cli.table import note, show_table

SHOWN = (State.PENDING, State.RETRYING, State.RUNNING, State.DEAD_LETTERED)


@dataclass(slots=True)
class Queue:
    namespace: str
    queue: str
    ready: int = 0
    oldest_ready: timedelta | None = None
    counts: dict[State, int] = field(default_factory=dict)

    def add(self, count: QueueCount) -> None:
        self.ready += count.ready
        waits = [wait for wait in (self.oldest_ready, count.oldest_ready) if wait is not None]
        self.oldest_ready = max(waits, default=None)
        self.counts[count.state] = count.jobs

    def document(self) -> dict[str, Any]:
        counts = {str(state): self.counts.get(state, 0) for state in SHOWN}
        named = {"namespace": self.namespace, "queue": self.queue}
        return {**named, "ready": self.ready, "oldest_ready": self.oldest_ready, **counts}

    def row(self) -> list[str]:
        counts = [str(self.counts.get(state, 0)) for state in SHOWN]
        # Whole seconds: a queue that is served shows 0s, not a flicker of milliseconds.
        oldest = "-" if self.oldest_ready is None else format_duration(self.oldest_ready // SECOND * SECOND)
        return [self.namespace, self.queue, str(self.ready), oldest, *counts]


SECOND = timedelta(seconds=1)


@click.command()
@namespace_option
@all_namespaces_option
@output_option
@with_connection
async def queues(
    settings: Settings, conn: PostgresConnection, *, namespace: str | None, all_namespaces: bool, output: str
) -> None:
    """Show each queue: its jobs by state, how many are ready, and how long the oldest of these has waited.

    Finished jobs are history, and not counted.

    \b
    Example:
      ostinato queues -A
    """
    counts = await store.count_jobs(conn, namespace=find_namespace(settings, namespace, all_namespaces))
    found = list(by_queue(counts))
    if output == "json":
        show_json([queue.document() for queue in found])
    elif found:
        headers = ["NAMESPACE", "QUEUE", "READY", "OLDEST", *(str(state).upper().replace("_", "-") for state in SHOWN)]
        show_table(headers, [queue.row() for queue in found])
    else:
        note("no live jobs and no dead letters")


def by_queue(counts: Sequence[QueueCount]) -> Iterator[Queue]:
    for (namespace, name), group in groupby(counts, key=lambda count: (count.namespace, count.queue)):
        queue = Queue(namespace, name)
        for count in group:
            queue.add(count)
        yield queue

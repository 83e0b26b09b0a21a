"""What `-o json` prints: keys are the columns' names, times are ISO 8601 in UTC, lengths of time are seconds."""

from dataclasses import asdict
from typing import Any, Final

import click
from pydantic_core import to_json

from ostinato.store import Job

COLUMNS: Final = (
    "id",
    "namespace",
    "queue",
    "job_type",
    "job_version",
    "payload",
    "state",
    "priority",
    "run_at",
    "attempt",
    "max_attempts",
    "timeout",
    "dedup_key",
    "concurrency_key",
    "context",
    "worker_id",
    "lease",
    "attempts",
    "error_code",
    "error_message",
    "progress",
    "output",
    "schedule_id",
    "cancel_requested_at",
    "created_at",
    "started_at",
    "finished_at",
)


def show_json(value: Any) -> None:
    click.echo(to_json(value, indent=2, timedelta_mode="float"))


def job_document(job: Job) -> dict[str, Any]:
    fields = asdict(job)
    return {column: fields[column] for column in COLUMNS}

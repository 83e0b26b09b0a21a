"""Jobs as a table: one line each."""

from collections.abc import Sequence
from datetime import datetime

from ostinato.lifecycle import State
from ostinato.store import Job
from ostinato_cli.ages import age, until
from ostinato_cli.document import job_document, show_json
from ostinato_cli.table import note, shortened, show_table

HEADERS = ["ID", "QUEUE", "TYPE", "STATE", "ATTEMPT", "WHEN", "AGE", "ERROR"]


def show_jobs(jobs: Sequence[Job], now: datetime, *, output: str, limit: int, namespaces: bool) -> None:
    """`namespaces`: they may differ, so say which."""
    if output == "json":
        show_json([job_document(job) for job in jobs])
    elif not jobs:
        note("no jobs found")
    else:
        rows = [_row(job, now) for job in jobs]
        show_table(_wider(HEADERS, "NAMESPACE", namespaces), [_wider(row, ns, namespaces) for ns, row in rows])
        if len(jobs) == limit:
            note(f"there may be more: add --before {jobs[-1].id}")


def _row(job: Job, now: datetime) -> tuple[str, list[str]]:
    version = "" if job.job_version == 1 else f"@{job.job_version}"
    attempt = str(job.attempt) if job.max_attempts is None else f"{job.attempt}/{job.max_attempts}"
    error = job.error_code or ""
    if job.error_message:
        error = shortened(f"{error}: {job.error_message}")
    what = [str(job.id), job.queue, job.job_type + version, str(job.state), attempt]
    return job.namespace, [*what, when(job, now), age(job.created_at, now), error]


def when(job: Job, now: datetime) -> str:
    """What matters of time in this state."""
    if job.state is State.RUNNING:
        return f"for {age(job.started_at, now)}" + (", to stop" if job.cancel_requested_at else "")
    if job.finished_at is not None:
        return f"{age(job.finished_at, now)} ago"
    return until(job.run_at, now) if job.run_at > now else f"ready {until(job.run_at, now)}"


def _wider(row: list[str], cell: str, yes: bool) -> list[str]:
    return [row[0], cell, *row[1:]] if yes else row

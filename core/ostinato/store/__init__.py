"""The only door to Postgres: every statement of the house is in `sql/`, and a function of the same name calls it.

The first argument is always the connection (an asyncpg connection or pool), so that the caller decides about
transactions. Database time decides everything; our own clock only
measures how long a look at the lanes took.
"""

from ostinato.store.doctor import clock
from ostinato.store.job import Attempt, Cancellation, Claimed, Held, Job, Outcome, QueueCount
from ostinato.store.jobs import (
    JobFilter,
    count_jobs,
    find_lanes,
    get_job,
    list_dead_letters,
    list_jobs,
    next_run_at,
)
from ostinato.store.lanes import Lanes
from ostinato.store.moves import (
    Recovered,
    cancel,
    claim,
    complete,
    dead_letter,
    hasten,
    progress,
    recover,
    redrive,
    release,
    retry,
    snooze,
    stop,
)
from ostinato.store.retention import (
    make_partitions,
    prune_dead_letters,
    prune_history,
    prune_idempotency_keys,
    prune_limits,
    prune_workers,
)
from ostinato.store.statements import Connection
from ostinato.store.workers import (
    JobType,
    Limit,
    NewWorker,
    Renewal,
    Worker,
    drain_workers,
    expire_workers,
    find_max_attempts,
    get_worker,
    list_workers,
    mark_idle,
    register_worker,
    renew_worker,
    retire_workers,
)

__all__ = [
    "Attempt",
    "Cancellation",
    "Claimed",
    "Connection",
    "Held",
    "Job",
    "JobFilter",
    "JobType",
    "Lanes",
    "Limit",
    "NewWorker",
    "Outcome",
    "QueueCount",
    "Recovered",
    "Renewal",
    "Worker",
    "cancel",
    "claim",
    "clock",
    "complete",
    "count_jobs",
    "dead_letter",
    "drain_workers",
    "expire_workers",
    "find_lanes",
    "find_max_attempts",
    "get_job",
    "get_worker",
    "hasten",
    "list_dead_letters",
    "list_jobs",
    "list_workers",
    "make_partitions",
    "mark_idle",
    "next_run_at",
    "progress",
    "prune_dead_letters",
    "prune_history",
    "prune_idempotency_keys",
    "prune_limits",
    "prune_workers",
    "recover",
    "redrive",
    "register_worker",
    "release",
    "renew_worker",
    "retire_workers",
    "retry",
    "snooze",
    "stop",
]

"""Is the schema there, is there room for what finishes, and does the work get done?"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from ostinato.durations import format_duration
from ostinato.health.finding import Finding, fail, ok, warn
from ostinato.store.doctor import Line, Lost

LONG_WAIT: Final = timedelta(minutes=5)
GRACE: Final = timedelta(seconds=10)  # a leader looks every few seconds
FEW_DAYS: Final = 3
LEADER: Final = "run a leader: `ostinato operator`, or `ostinato worker --duties`"


def judge_schema(pending: Sequence[str], applied: int) -> Finding:
    if pending:
        return fail("schema", f"not applied yet: {', '.join(pending)}", "run `ostinato migrate`")
    return ok("schema", f"all {applied} migrations are applied")


def judge_partitions(days: int) -> Finding:
    """`days` after today for which history has a partition."""
    advice = f"{LEADER}; at once: select ostinato.make_partitions(14)"
    if days < 1:
        return fail("partitions", "history has no partition for tomorrow", advice)
    if days < FEW_DAYS:
        return warn("partitions", f"history has partitions for only {days} more days", advice)
    return ok("partitions", f"history has partitions for the next {days} days")


def judge_queues(lines: Sequence[Line]) -> Finding:
    """`lines`, the longest wait first."""
    late = [line for line in lines if line.oldest > LONG_WAIT]
    if not late:
        return ok("queues", "no job has waited for over " + format_duration(LONG_WAIT))
    worst = next((line for line in late if not line.workers), late[0])
    saw = f"{worst.ready:,} ready in {worst.namespace}/{worst.queue}, the oldest for {format_duration(worst.oldest)}"
    if worst.workers:
        return warn("queues", f"{saw}; {worst.workers} workers serve it", "add workers, or see if they know its types")
    return warn("queues", f"{saw}; no live worker serves it", f"run one: ostinato worker --queues {worst.queue}")


def judge_lost(lost: Lost) -> Finding:
    if lost.workers and lost.silent and lost.silent > GRACE:
        saw = f"{lost.workers} workers lost their lease, the first {format_duration(lost.silent)} ago"
        return warn("recovery", f"{saw}, and nobody took their jobs back", LEADER)
    if lost.jobs:
        return warn("recovery", f"{lost.jobs} jobs are still held by workers that ended", LEADER)
    return ok("recovery", "no job is held by a dead worker")

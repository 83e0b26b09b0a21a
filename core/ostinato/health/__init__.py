"""Whether a database is fit for jobs, and what to do if not. Facts in, findings out: no I/O, no clock."""

from ostinato.health.finding import Finding, Verdict
from ostinato.health.server import (
    judge_autovacuum,
    judge_clock,
    judge_horizon,
    judge_notifications,
    judge_pooler,
    judge_version,
)
from ostinato.health.work import judge_lost, judge_partitions, judge_queues, judge_schema

__all__ = [
    "Finding",
    "Verdict",
    "judge_autovacuum",
    "judge_clock",
    "judge_horizon",
    "judge_lost",
    "judge_notifications",
    "judge_partitions",
    "judge_pooler",
    "judge_queues",
    "judge_schema",
    "judge_version",
]

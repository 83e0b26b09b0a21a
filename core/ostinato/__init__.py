"""Ostinato: recurring and one-off jobs on Postgres. What is imported here is what users build on."""

from ostinato.backoff import Decorrelated, Exponential, Fixed, Steps
from ostinato.context import Context, SyncContext
from ostinato.enqueue import enqueue, enqueue_many
from ostinato.errors import InvalidArgument, NotFound, NotPossible, OstinatoError
from ostinato.failures import PermanentError, Snooze, TransientError, error_for_status
from ostinato.handler import job
from ostinato.newjob import Enqueued, NewJob

__version__ = "0.1.0"

__all__ = [
    "Context",
    "Decorrelated",
    "Enqueued",
    "Exponential",
    "Fixed",
    "InvalidArgument",
    "NewJob",
    "NotFound",
    "NotPossible",
    "OstinatoError",
    "PermanentError",
    "Snooze",
    "Steps",
    "SyncContext",
    "TransientError",
    "enqueue",
    "enqueue_many",
    "error_for_status",
    "job",
]

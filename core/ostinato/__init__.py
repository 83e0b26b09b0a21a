"""Ostinato: recurring and one-off jobs on Postgres. What is imported here is what users build on."""

from ostinato.enqueue import enqueue, enqueue_many
from ostinato.errors import InvalidArgument, NotFound, NotPossible, OstinatoError
from ostinato.newjob import Enqueued, NewJob

__version__ = "0.1.0"

__all__ = [
    "Enqueued",
    "InvalidArgument",
    "NewJob",
    "NotFound",
    "NotPossible",
    "OstinatoError",
    "enqueue",
    "enqueue_many",
]

"""What services test their jobs with. Nothing of the house imports it, and it stands on all of the worker.

assert_enqueued, assert_not_enqueued, enqueued    what a piece of code enqueued, seen from its own transaction
run_job                                           one attempt of a handler, without a database
drain, advance                                    run what is due; let time pass
Clock                                             the time that handlers are told

Fixtures for pytest are in `ostinato.testing.pytest`. What runs jobs is imported when it is asked for: a service that
only enqueues does not have the worker's packages.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ostinato.testing.clock import Clock, advance
from ostinato.testing.enqueued import assert_enqueued, assert_not_enqueued, enqueued

if TYPE_CHECKING:
    from ostinato.testing.draining import drain
    from ostinato.testing.rehearsal import Outcome, run_job

__all__ = [
    "Clock",
    "Outcome",
    "advance",
    "assert_enqueued",
    "assert_not_enqueued",
    "drain",
    "enqueued",
    "run_job",
]

NEED_THE_WORKER: Final = {"drain": "draining", "Outcome": "rehearsal", "run_job": "rehearsal"}


def __getattr__(name: str) -> Any:
    if name not in NEED_THE_WORKER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{NEED_THE_WORKER[name]}"), name)
    except ModuleNotFoundError as error:
        advice = f"{name} needs the worker's packages: pip install 'ostinato[worker]'"
        raise ImportError(f"{advice} ({error})") from error

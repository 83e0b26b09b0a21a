"""Functions that know nothing of jobs, and one that makes a job of any."""

from collections.abc import Callable
from typing import Any

from ostinato import job
from ostinato.handler import Handler


def compute() -> int:
    return 42


def isolated(name: str, function: Callable[..., Any]) -> Handler:
    return job(name, isolation="process")(function)

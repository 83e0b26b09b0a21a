"""What the environment says, read once. The only place that looks at `os.environ`.

Each field is the variable OSTINATO_<FIELD>; one that is unset or empty means the default. Other rooms have settings of
their own, read by the same `read_environment`.
"""

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from ostinato.durations import parse_duration
from ostinato.errors import InvalidArgument
from ostinato.names import check_namespace

PREFIX: Final = "OSTINATO_"
YES: Final = ("true", "1", "yes", "on")
NO: Final = ("false", "0", "no", "off")

Reader = Callable[[str, str], Any]  # of the variable's name and its text
Model = TypeVar("Model", bound=BaseModel)


class Settings(BaseModel):
    """Defaults are what a service wants that has said nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dsn: str | None = None
    listen_dsn: str | None = None  # a way around PgBouncer, for LISTEN
    pgbouncer: bool = False  # the DSN leads to PgBouncer in transaction mode
    namespace: str = "default"
    pool: str | None = None  # the WorkerPool that this process belongs to
    pod: str | None = None  # its pod; both from the downward API
    max_attempts: int = 5  # for job types of which nobody said it
    poison: int = 3  # a job that took so many workers with it is not tried again
    lease: timedelta = timedelta(seconds=15)  # a worker that is silent for so long is dead
    no_handler: timedelta = timedelta(hours=1)  # a due job whose type no worker knew for so long is a dead letter
    keep_history: timedelta = timedelta(days=30)
    keep_workers: timedelta = timedelta(days=1)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        return read_environment(cls, READERS, environ)


def read_environment(
    model: type[Model], readers: Mapping[str, Reader], environ: Mapping[str, str] | None = None
) -> Model:
    """Settings of a room; None is the environment of this process."""
    environ = os.environ if environ is None else environ
    given = {field: environ.get(variable(field), "").strip() for field in model.model_fields}
    return model(**{field: readers[field](variable(field), text) for field, text in given.items() if text})


def variable(field: str) -> str:
    return PREFIX + field.upper()


def _text(_: str, text: str) -> str:
    return text


def switch(name: str, text: str) -> bool:
    if text.lower() not in YES + NO:
        raise InvalidArgument(name, text, "it must be true or false")
    return text.lower() in YES


def _namespace(name: str, text: str) -> str:
    try:
        return check_namespace(text)
    except InvalidArgument as error:
        raise InvalidArgument(name, text, error.rule) from None


def _count(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 32_767):
        raise InvalidArgument(name, text, "it must be a whole number from 1 to 32,767")
    return int(text)


def _duration(name: str, text: str) -> timedelta:
    duration = parse_duration(name, float(text) if text.isascii() and text.isdigit() else text)
    if duration < timedelta(seconds=1):
        raise InvalidArgument(name, text, "it must be at least 1s")
    return duration


READERS: Final[Mapping[str, Reader]] = {
    "dsn": _text,
    "listen_dsn": _text,
    "pgbouncer": switch,
    "namespace": _namespace,
    "pool": _text,
    "pod": _text,
    "max_attempts": _count,
    "poison": _count,
    "lease": _duration,
    "no_handler": _duration,
    "keep_history": _duration,
    "keep_workers": _duration,
}

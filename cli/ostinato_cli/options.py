"""Options that several commands share, and the kinds of values they take."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import click
from pydantic_core import from_json

from ostinato.durations import parse_duration
from ostinato.errors import InvalidArgument, shown

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def json_object(text: str | bytes) -> dict[str, Any]:
    seen = shown(text if isinstance(text, str) else text.decode(errors="replace"))
    try:
        found = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        quotes = "in a shell, put it in single quotes: '{\"key\": 1}'"
        raise click.BadParameter(f"{seen} is not JSON ({error}); {quotes}") from None
    if not isinstance(found, dict):
        raise click.BadParameter(f"{seen} must be an object, such as '{{\"key\": 1}}'")
    return found


def instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no time: write it as 2026-01-31T09:00:00Z") from None
    if at.tzinfo is None:
        raise click.BadParameter(f"{text!r} says no time zone: add Z, or an offset such as +09:00")
    return at


def length(text: str) -> timedelta:
    try:
        return parse_duration("it", float(text) if text.isascii() and text.isdigit() else text)
    except InvalidArgument as error:
        raise click.BadParameter(str(error)) from None


def moment(text: str) -> datetime | timedelta:
    """A time, or how long before the database's now."""
    return instant(text) if text[4:5] == "-" else length(text)


output_option: Final = click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", help="For people (default) or programs."
)
namespace_option: Final = click.option("-n", "--namespace", help="Default: OSTINATO_NAMESPACE, else `default`.")
all_namespaces_option: Final = click.option("-A", "--all-namespaces", is_flag=True, help="Of every namespace.")
job_id_argument: Final = click.argument("job_id", metavar="ID", type=click.UUID)
job_ids_argument: Final = click.argument("job_ids", metavar="ID...", type=click.UUID, nargs=-1, required=True)


def options(*given: Callable[[Decorated], Decorated]) -> Callable[[Decorated], Decorated]:
    """Several options as one decorator, in the order in which --help shows them."""

    def decorate(command: Decorated) -> Decorated:
        for option in reversed(given):
            command = option(command)
        return command

    return decorate

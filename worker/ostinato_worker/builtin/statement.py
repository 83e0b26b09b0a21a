"""Statements that an operator configured under names, with the types of their parameters.

[forget_sessions]                            (TOML, or the same as JSON)
statement = "delete from sessions where id in (select id from sessions where seen_at < now() - :older limit :limit)"
limit = 1000                                 how many rows one batch takes; only of a statement with :limit
args = {older = "interval"}                  every other parameter, and its type
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import to_json

from ostinato.durations import parse_duration
from ostinato.errors import InvalidArgument

VARIABLE: Final = "OSTINATO_SQL_FILE"
LIMIT: Final = "limit"
# First what must be left alone: texts, quoted names, comments, casts. Then a parameter, or the end of a statement.
TOKEN: Final = re.compile(
    r"""(?P<other>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/
        |\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$|::)
      |(?<![\w:]):(?P<name>[a-z_][a-z0-9_]*)|(?P<end>;)""",
    re.DOTALL | re.VERBOSE | re.ASCII,
)
JSON: Final = Annotated[Any, AfterValidator(lambda value: to_json(value).decode())]
INTERVAL: Final = Annotated[timedelta, BeforeValidator(lambda value: parse_duration("interval", value))]
TYPES: Final[Mapping[str, Any]] = {
    "text": str,
    "boolean": bool,
    "integer": Annotated[int, Field(ge=-(2**31), lt=2**31)],
    "bigint": Annotated[int, Field(ge=-(2**63), lt=2**63)],
    "double precision": float,
    "numeric": Decimal,
    "date": date,
    "timestamptz": AwareDatetime,
    "interval": INTERVAL,
    "uuid": UUID,
    "jsonb": JSON,
}


class Entry(BaseModel):
    """As it is written in the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    statement: str
    limit: int | None = Field(None, ge=1, le=100_000)
    args: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class ConfiguredStatement:
    text: str  # in asyncpg's dialect
    parameters: tuple[str, ...]
    limit: int | None  # how many rows one batch takes; None: it is run once
    types: Mapping[str, TypeAdapter[Any]]

    def values(self, args: Mapping[str, Any]) -> list[Any]:
        """In the order of their places; raises InvalidArgument if they are not what the statement takes."""
        takes = ", ".join(self.types) or "none"
        for name in (*self.types, *args):
            if name not in args or name not in self.types:
                raise InvalidArgument("args", dict(args), f"the statement takes {takes}, each exactly once")
        return [self.limit if name == LIMIT else self._value(name, args[name]) for name in self.parameters]

    def _value(self, name: str, value: object) -> Any:
        try:
            return self.types[name].validate_python(value)
        except ValidationError as error:
            raise InvalidArgument(f"args.{name}", value, error.errors()[0]["msg"]) from None


def read_statements(path: Path) -> dict[str, ConfiguredStatement]:
    try:
        text = path.read_text("utf-8")
        entries = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise InvalidArgument(VARIABLE, str(path), f"it must be TOML, or JSON if its name ends so: {error}") from None
    if not isinstance(entries, dict):
        raise InvalidArgument(VARIABLE, str(path), "it must map names to statements")
    return {name: configure(name, entry) for name, entry in entries.items()}


def configure(name: str, entry: object) -> ConfiguredStatement:
    try:
        read = Entry.model_validate(entry)
    except ValidationError as error:
        fault = error.errors()[0]
        raise InvalidArgument(VARIABLE, name, f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
    parameters = tuple(dict.fromkeys(match["name"] for match in TOKEN.finditer(read.statement) if match["name"]))
    _check_parameters(name, parameters, read)
    return ConfiguredStatement(
        text=_with_places(name, read, parameters),
        parameters=parameters,
        limit=(read.limit or 1_000) if LIMIT in parameters else None,
        types={argument: TypeAdapter(_type(name, kind)) for argument, kind in read.args.items()},
    )


def _check_parameters(name: str, parameters: tuple[str, ...], entry: Entry) -> None:
    undeclared = [parameter for parameter in parameters if parameter not in (*entry.args, LIMIT)]
    if undeclared:
        raise InvalidArgument(VARIABLE, name, f'say its type in args: {{{undeclared[0]} = "text"}} or another')
    unused = [argument for argument in entry.args if argument not in parameters or argument == LIMIT]
    if unused:
        raise InvalidArgument(VARIABLE, name, f"the statement must have a :{unused[0]}, or its args must not")
    if entry.limit is not None and LIMIT not in parameters:
        raise InvalidArgument(VARIABLE, name, "a limit is of use only to a statement with a :limit")


def _type(name: str, text: str) -> Any:
    kind = TYPES.get(text.removesuffix("[]"))
    if kind is None:
        raise InvalidArgument(VARIABLE, name, f"{text!r} is not among {', '.join(TYPES)}, each with [] for many")
    return list[kind] if text.endswith("[]") else kind  # type: ignore[valid-type]


def _with_places(name: str, entry: Entry, parameters: tuple[str, ...]) -> str:
    """Each parameter with its type, which Postgres need not guess then, and cannot guess otherwise."""
    types = entry.args | {LIMIT: "bigint"}
    places = {parameter: f"${place}::{types[parameter]}" for place, parameter in enumerate(parameters, 1)}

    def put(match: re.Match[str]) -> str:
        if match["end"]:
            raise InvalidArgument(VARIABLE, name, "it must be one statement, without a semicolon")
        return places[match["name"]] if match["name"] else match[0]

    return TOKEN.sub(put, entry.statement.strip().removesuffix(";"))

"""Named SQL statements, read from the `.sql` files beside this module.

-- let carried: id, namespace, queue        a list of columns that statements write as <carried>
-- name: get_job                            starts a statement
where id = :id                              a named parameter
  and queue = :queue -- if queue            a line that is left out unless `queue` is given
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, Protocol
from uuid import UUID

LET: Final = re.compile(r"^-- let (\w+): (.+(?:\n--   .+)*)$", re.MULTILINE)
NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
OPTIONAL: Final = re.compile(r"^.*-- if (\w+)$\n?", re.MULTILINE)
PARAMETER: Final = re.compile(r"(?<![:\w]):([a-z_]+)\b")
COMMENT: Final = re.compile(r"\s*--.*$", re.MULTILINE)


class Connection(Protocol):
    """What the store needs of asyncpg: a connection, a pool, or a connection lent by a pool."""

    async def fetch(self, query: str, *args: Any) -> list[Any]: ...
    async def fetchrow(self, query: str, *args: Any) -> Any: ...
    async def fetchval(self, query: str, *args: Any) -> Any: ...
    async def execute(self, query: str, *args: Any) -> str: ...


class Statement:
    """One statement, in asyncpg's dialect; `named` keeps the parameters' names for other drivers."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.named = COMMENT.sub("", source).strip()
        self.parameters = tuple(dict.fromkeys(PARAMETER.findall(self.named)))
        places = {parameter: f"${place}" for place, parameter in enumerate(self.parameters, 1)}
        self.text = PARAMETER.sub(lambda match: places[match[1]], self.named)
        self._template = PARAMETER.sub(r"%(\1)s", self.named.replace("%", "%%"))

    def spelled(self, **given: Any) -> str:
        """With the values written out: to be sent in one message with other statements, which takes no parameters."""
        return self._template % {name: _literal(given[name]) for name in self.parameters}

    def called(self, name: str, **given: Any) -> str:
        """The same of a session that has prepared it under this name."""
        arguments = ", ".join([_literal(given[parameter]) for parameter in self.parameters])
        return f"execute {name}({arguments})"

    async def fetch(self, conn: Connection, **given: Any) -> list[Any]:
        return await conn.fetch(self.text, *self._arguments(given))

    async def fetchrow(self, conn: Connection, **given: Any) -> Any:
        return await conn.fetchrow(self.text, *self._arguments(given))

    async def fetchval(self, conn: Connection, **given: Any) -> Any:
        return await conn.fetchval(self.text, *self._arguments(given))

    async def execute(self, conn: Connection, **given: Any) -> str:
        return await conn.execute(self.text, *self._arguments(given))

    def _arguments(self, given: Mapping[str, Any]) -> list[Any]:
        return [given[parameter] for parameter in self.parameters]


def _literal(value: UUID | int | str | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if "\\" in text or "'" in text:
        text = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{text}'"  # which means the same whatever the session's settings are


class Choice:
    """A statement with optional lines: what it becomes depends on which parameters are given."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.source = source
        self.options = frozenset(OPTIONAL.findall(source))
        self._made: dict[frozenset[str], Statement] = {}

    def given(self, options: frozenset[str]) -> Statement:
        options &= self.options
        if options not in self._made:
            kept = OPTIONAL.sub(lambda line: line[0] if line[1] in options else "", self.source)
            self._made[options] = Statement(self.name, kept)
        return self._made[options]


class StatementFile:
    """The statements of one `.sql` file, by name."""

    def __init__(self, name: str) -> None:
        text = _read(name)
        self.sources = dict(_statements(text, _lets()))
        self.statements = {
            key: Statement(key, source) for key, source in self.sources.items() if not OPTIONAL.search(source)
        }
        self.choices = {key: Choice(key, source) for key, source in self.sources.items() if OPTIONAL.search(source)}

    def __getitem__(self, name: str) -> Statement:
        return self.statements[name]


def _statements(text: str, lets: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    parts: Sequence[str] = NAME.split(text)[1:]
    for name, source in zip(parts[::2], parts[1::2], strict=True):
        for let, value in lets.items():
            source = source.replace(f"<{let}>", value)
        yield name, source


@cache
def _lets() -> dict[str, str]:
    return {name: value.replace("\n--  ", "") for name, value in LET.findall(_read("moves"))}


@cache
def load(name: str) -> StatementFile:
    return StatementFile(name)


def rows_in(status: str) -> int:
    """How many rows a statement wrote, by what the server said of it: "DELETE 42"."""
    return int(status.rpartition(" ")[2])


def names() -> list[str]:
    """Every statement file there is."""
    return sorted(entry.name.removesuffix(".sql") for entry in _folder().iterdir() if entry.name.endswith(".sql"))


def _folder() -> Any:
    return files("ostinato.store") / "sql"


def _read(name: str) -> str:
    return str((_folder() / f"{name}.sql").read_text(encoding="utf-8"))

"""What an operator says about the built-in handlers. Read from the environment by `ostinato.settings`."""

from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, ConfigDict

from ostinato.errors import InvalidArgument
from ostinato.settings import Reader, read_environment
from ostinato_worker.builtin.gate import GROUPS, Network


class BuiltinSettings(BaseModel):
    """Nothing has to be set: then there are no secrets, no SQL, and no way to this host."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    secrets_dir: Path | None = None  # one file per secret, named after it
    sql_file: Path | None = None  # TOML or JSON: the statements that `sql` may run
    http_allow: tuple[Network, ...] = ()  # opened, whatever refuses them
    http_refuse: tuple[Network, ...] = ()  # refused too
    http_ca_file: Path | None = None  # authorities beside the system's, as PEM

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        return read_environment(cls, READERS, environ)


def _folder(name: str, text: str) -> Path:
    if not Path(text).is_dir():
        raise InvalidArgument(name, text, "it must be a directory that is there")
    return Path(text)


def _file(name: str, text: str) -> Path:
    if not Path(text).is_file():
        raise InvalidArgument(name, text, "it must be a file that is there")
    return Path(text)


def _networks(name: str, text: str) -> tuple[Network, ...]:
    words = text.replace(",", " ").split()
    return tuple(network for word in words for network in _network(name, word))


def _network(name: str, word: str) -> tuple[Network, ...]:
    if word in GROUPS:
        return GROUPS[word]
    try:
        return (ip_network(word),)
    except ValueError:
        rule = f"write addresses, networks such as 10.0.0.0/8, or the names {', '.join(GROUPS)}, separated by commas"
        raise InvalidArgument(name, word, rule) from None


READERS: Final[Mapping[str, Reader]] = {
    "secrets_dir": _folder,
    "sql_file": _file,
    "http_allow": _networks,
    "http_refuse": _networks,
    "http_ca_file": _file,
}

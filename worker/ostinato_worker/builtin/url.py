"""A URL that a request can be sent to, and as people may see it. No I/O."""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final, Self
from urllib.parse import SplitResult, urljoin, urlsplit

from ostinato_worker.builtin.secret import HIDDEN

PORTS: Final = {"http": 80, "https": 443}
LABEL: Final = "[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?"  # of lower case, as urlsplit gives it
NAME: Final = re.compile(rf"(?=.{{1,253}}$){LABEL}(\.{LABEL})*", re.ASCII)
PRINTABLE: Final = re.compile(r"[!-~]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str
    host: str  # without brackets
    port: int
    target: str  # path and query, as they are sent

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError with the rule that is broken, never with the URL: it may hold a password."""
        # Before urlsplit, which drops line breaks without a word.
        if not PRINTABLE.fullmatch(text) or "\\" in text:
            raise ValueError("a URL is printable ASCII: write other characters as %20 and the like, a name as xn--…")
        split, port = _split(text)
        if split.scheme not in PORTS:
            raise ValueError("the URL must begin with https:// or http://")
        if "@" in split.netloc:
            raise ValueError("the URL must not hold a user or password: name a secret in secret_headers")
        host = (split.hostname or "").removesuffix(".")
        if not (NAME.fullmatch(host) or _is_ipv6(host)):
            raise ValueError("the URL must name a host, such as https://example.com/hook")
        return cls(split.scheme, host, port or PORTS[split.scheme], _target(split))

    def joined(self, location: str) -> Self:
        """Where a redirect leads."""
        return self.parse(urljoin(f"{self.origin}{self.target}", location))

    def may_redirect_to(self, other: "Url") -> bool:
        """To the same server, or to its better side."""
        if self.host != other.host:
            return False
        better = (self.scheme, other.scheme) == ("http", "https")
        return better or (self.scheme, self.port) == (other.scheme, other.port)

    @property
    def authority(self) -> str:
        """For the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def shown(self) -> str:
        """As logs and receipts may have it: what a query says is often a token."""
        path, _, query = self.target.partition("?")
        names = [part.partition("=") for part in query.split("&") if part]
        hidden = "&".join(f"{name}={HIDDEN}" if equals else HIDDEN for name, equals, _ in names)
        return f"{self.origin}{path}" + (f"?{hidden}" if hidden else "")


def _split(text: str) -> tuple[SplitResult, int | None]:
    try:
        split = urlsplit(text)
        port = split.port
    except ValueError:
        raise ValueError("the URL's host or port cannot be read") from None
    if port == 0:
        raise ValueError("the URL's port must be from 1 to 65535")
    return split, port


def _is_ipv6(host: str) -> bool:
    try:
        return IPv6Address(host).scope_id is None
    except ValueError:
        return False


def _target(split: SplitResult) -> str:
    return (split.path or "/") + (f"?{split.query}" if split.query else "")

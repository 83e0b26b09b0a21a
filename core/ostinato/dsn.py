"""Where a database is, as one URL. No I/O.

`?pgbouncer=true` is our own option, as other clients have it: the URL leads to PgBouncer in transaction mode. It is
part of the URL since of many databases only some may be behind one.
"""

from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from ostinato.errors import InvalidArgument
from ostinato.settings import switch

RULE: Final = (
    "it must be a URL such as postgresql://user:password@host:5432/database, "
    "with special characters of a password as %2F and the like"
)
OPTION: Final = "pgbouncer"


@dataclass(frozen=True, slots=True)
class Dsn:
    text: str  # as asyncpg takes it
    shown: str  # as people may see it: without a password
    pgbouncer: bool

    @classmethod
    def parse(cls, text: str, *, pgbouncer: bool = False) -> Self:
        url = _split(text.strip())
        query = parse_qsl(url.query, keep_blank_values=True)
        for name, value in query:
            if name == OPTION:
                pgbouncer = switch("dsn's option pgbouncer", value)
        kept = [(name, value) for name, value in query if name != OPTION]
        return cls(_with_query(url, kept).geturl(), _without_password(url, kept), pgbouncer)

    def __str__(self) -> str:
        return self.shown


def _split(text: str) -> SplitResult:
    # What is no URL is not shown either: the password may be anywhere in it.
    try:
        url = urlsplit(text)
    except ValueError:
        raise InvalidArgument("dsn", "***", RULE) from None
    if url.scheme not in ("postgresql", "postgres"):
        raise InvalidArgument("dsn", "***" if "@" in text or "password" in text else text, RULE)
    # A password with a bare "/", "?" or "#" ends the host early: the rest of it would be shown as something else.
    if "@" in url.path + url.fragment + "".join(name for name, _ in parse_qsl(url.query, keep_blank_values=True)):
        raise InvalidArgument("dsn", "***", RULE)
    return url


def _with_query(url: SplitResult, query: list[tuple[str, str]]) -> SplitResult:
    return url._replace(query=urlencode(query, safe="/"))


def _without_password(url: SplitResult, query: list[tuple[str, str]]) -> str:
    user, at, hosts = url.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    open_part = url._replace(netloc=name + (":***" if colon else "") + at + hosts)
    return _with_query(open_part, [(key, value) for key, value in query if "password" not in key]).geturl()

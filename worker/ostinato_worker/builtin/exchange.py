"""One request and its answer, over a connection of its own.

The address that is connected to is the one that was judged: the name is resolved once, and only to addresses. Proxies
of the environment are not asked, since they would resolve the name again, out of our sight.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import SOCK_STREAM
from typing import Final

import h11

from ostinato_worker.builtin.gate import Gate
from ostinato_worker.builtin.url import Url

MOST_BODY: Final = 64 * 1024  # of an answer; what is beyond is not read
CHUNK: Final = 16 * 1024
PATIENCE: Final = 5.0  # with one of several addresses

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    url: Url
    headers: tuple[tuple[str, str], ...] = field(repr=False)  # secrets are in it
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


async def exchange(request: Request, gate: Gate, tls: ssl.SSLContext) -> Answer:
    """Raises OSError or h11.RemoteProtocolError if it fails, and PermanentError if the gate is closed."""
    async with _connected(request.url, gate, tls) as (reader, writer):
        conn = h11.Connection(h11.CLIENT)
        writer.write(bytes_of(conn, request))
        # Who refuses a request early may close before it has read all of it; the answer may be there nevertheless.
        with suppress(ConnectionError):
            await writer.drain()
        return await _receive(conn, reader)


def bytes_of(conn: h11.Connection, request: Request) -> bytes:
    headers = [("Host", request.url.authority), ("Connection", "close"), *request.headers]
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        headers.append(("Content-Length", str(len(request.body))))
    start = h11.Request(method=request.method, target=request.url.target, headers=headers)
    return b"".join(conn.send(event) or b"" for event in (start, h11.Data(data=request.body), h11.EndOfMessage()))


@asynccontextmanager
async def _connected(url: Url, gate: Gate, tls: ssl.SSLContext) -> AsyncIterator[Streams]:
    reader, writer = await _connect(url, gate, tls)
    try:
        yield reader, writer
    finally:
        # Not close(), which waits for the other side to say goodbye.
        writer.transport.abort()


async def _connect(url: Url, gate: Gate, tls: ssl.SSLContext) -> Streams:
    *others, last = await _resolve(url)
    gate.check(url.host, (*others, last))
    for address in others:
        with suppress(OSError):  # a timeout is one too
            async with asyncio.timeout(PATIENCE):
                return await _open(address, url, tls)
    return await _open(last, url, tls)


async def _resolve(url: Url) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(url.host, url.port, type=SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def _open(address: str, url: Url, tls: ssl.SSLContext) -> Streams:
    if url.scheme == "http":
        return await asyncio.open_connection(address, url.port)
    return await asyncio.open_connection(address, url.port, ssl=tls, server_hostname=url.host)


async def _receive(conn: h11.Connection, reader: asyncio.StreamReader) -> Answer:
    status, headers, body = 0, dict[str, str](), bytearray()
    while len(body) <= MOST_BODY:
        event = conn.next_event()
        if event is h11.NEED_DATA:
            conn.receive_data(await reader.read(CHUNK))
        elif isinstance(event, h11.Response):
            status, headers = event.status_code, _headers(event)
        elif isinstance(event, h11.Data):
            body += event.data
        elif not isinstance(event, h11.InformationalResponse):
            break
    return Answer(status, headers, bytes(body[:MOST_BODY]))


def _headers(response: h11.Response) -> dict[str, str]:
    """Of several of one name the first."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(list(response.headers))}

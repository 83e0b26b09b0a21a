"""A receiver of webhooks on this host: a real server, which answers what it was told to, byte for byte."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Received:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    port: int = 0
    received: list[Received] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)  # one per request; after the last one 200
    silent: bool = False
    left: asyncio.Event = field(default_factory=asyncio.Event)  # the other side has gone

    def url(self, path: str = "/hook", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.received.append(await _read(reader))
            if self.silent:
                await reader.read()
                self.left.set()
                return
            writer.write(self.answers.pop(0) if self.answers else answer(200))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            writer.close()


def answer(status: int, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def receiver(tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    here = Receiver()
    server = await asyncio.start_server(here.serve, "127.0.0.1", 0, ssl=tls)
    here.port = server.sockets[0].getsockname()[1]
    async with server:
        yield here


async def _read(reader: asyncio.StreamReader) -> Received:
    start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = start.split(" ")
    headers = dict(_pair(line) for line in lines if line)
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, target, headers, body)


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(": ")
    return name.lower(), value

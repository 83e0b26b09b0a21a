"""Answers probes and Prometheus over HTTP. Each connection is for one request, which must be small and come soon.

/livez    the event loop answers: a process that does not should be replaced
/readyz   it can claim; 503 with the reason if not
/metrics  for Prometheus
"""

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Final

import h11

from ostinato.errors import InvalidArgument
from ostinato_worker.condition import Condition
from ostinato_worker.metrics import CONTENT_TYPE, Metrics

LOG: Final = logging.getLogger("ostinato.worker")
LARGEST_HEAD: Final = 8 * 1024
MOST_CONNECTIONS: Final = 64
PATIENCE: Final = 3.0  # with a whole request and its answer
TEXT: Final = "text/plain; charset=utf-8"

Page = Callable[[], tuple[HTTPStatus, str, bytes]]


class Health:
    def __init__(self, condition: Callable[[], Condition], metrics: Metrics) -> None:
        self._condition = condition
        self._metrics = metrics
        self._connections: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._pages: Mapping[bytes, Page] = {b"/livez": self._livez, b"/readyz": self._readyz, b"/metrics": self._shown}

    @asynccontextmanager
    async def served(self, port: int) -> AsyncIterator[int]:
        """On all addresses of this host: probes come from outside. 0 is any port that is free."""
        listening = _listen(port)
        server = await asyncio.start_server(self._meet, sock=listening, limit=LARGEST_HEAD)
        port = listening.getsockname()[1]
        LOG.info("answers /livez, /readyz and /metrics on port %d", port)
        try:
            yield port
        finally:
            server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = None
        if len(self._connections) > MOST_CONNECTIONS:
            # The oldest has had its time. To refuse the new one would let silent ones keep probes out.
            oldest = next(iter(self._connections))
            self._connections.pop(oldest)
            oldest.cancel()
        try:
            # A timeout is an OSError too. Cancelled is who was pushed out: asyncio would log that as our mistake.
            with suppress(OSError, asyncio.CancelledError):
                async with asyncio.timeout(PATIENCE):
                    await self._talk(reader, writer)
        finally:
            self._connections.pop(task, None)
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conn = h11.Connection(h11.SERVER, max_incomplete_event_size=LARGEST_HEAD)
        try:
            request = await _receive(conn, reader)
        except h11.RemoteProtocolError as error:
            status = HTTPStatus(error.error_status_hint)
            writer.write(_written(h11.Connection(h11.SERVER), b"GET", status, TEXT, b"this is no request\n"))
        else:
            if request is None:
                return
            writer.write(_written(conn, request.method, *self._answer(request)))
        await writer.drain()

    def _answer(self, request: h11.Request) -> tuple[HTTPStatus, str, bytes]:
        page = self._pages.get(request.target.partition(b"?")[0])
        if page is None:
            return HTTPStatus.NOT_FOUND, TEXT, b"there are /livez, /readyz and /metrics\n"
        if request.method not in (b"GET", b"HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"only GET and HEAD\n"
        return page()

    def _livez(self) -> tuple[HTTPStatus, str, bytes]:
        return HTTPStatus.OK, TEXT, b"alive\n"

    def _readyz(self) -> tuple[HTTPStatus, str, bytes]:
        reason = self._condition().unready
        if reason is None:
            return HTTPStatus.OK, TEXT, b"ready\n"
        return HTTPStatus.SERVICE_UNAVAILABLE, TEXT, f"{reason}\n".encode()

    def _shown(self) -> tuple[HTTPStatus, str, bytes]:
        return HTTPStatus.OK, CONTENT_TYPE, self._metrics.page()


def _listen(port: int) -> socket.socket:
    try:
        return _listen_everywhere(port)
    except OSError as error:
        raise InvalidArgument("health port", port, f"nobody can listen there: {error.strerror}") from None


def _listen_everywhere(port: int) -> socket.socket:
    """One socket for IPv6 and IPv4; hosts without the one still have the other."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise  # on one of the two: probes that come by that one would meet somebody else
    return socket.create_server(("", port))


async def _receive(conn: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    """None: they hung up, or said nothing."""
    while True:
        event = conn.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        conn.receive_data(await reader.read(LARGEST_HEAD))


def _written(conn: h11.Connection, method: bytes, status: HTTPStatus, content_type: str, body: bytes) -> bytes:
    headers = [("Content-Type", content_type), ("Content-Length", str(len(body))), ("Connection", "close")]
    headers += [("Cache-Control", "no-store")]
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers += [("Allow", "GET, HEAD")]
    start = h11.Response(status_code=status, reason=status.phrase, headers=headers)
    parts = [start] if method == b"HEAD" else [start, h11.Data(data=body)]
    return b"".join(conn.send(part) or b"" for part in parts)

"""A network between a worker and its server, which can be cut without a word."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit


class Network:
    """`cut()` swallows what existing connections say from now on; `closed` makes new ones as silent."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._generation = 0
        self._carrying: set[asyncio.Task[None] | None] = set()
        self.closed = False

    def cut(self) -> None:
        self._generation += 1

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me, mine = asyncio.current_task(), self._generation
        self._carrying.add(me)
        ends = [writer]
        try:
            with suppress(OSError, asyncio.CancelledError):
                there, back = await asyncio.open_unix_connection(self._socket)
                ends.append(back)
                await asyncio.gather(self._pump(reader, back, mine), self._pump(there, writer, mine))
        finally:
            for each in ends:
                each.close()
            self._carrying.discard(me)

    async def end(self) -> None:
        """What a worker has left silent would else be closed in the middle of another test, which hears a complaint."""
        for task in self._carrying:
            if task:
                task.cancel()
        while self._carrying:
            await asyncio.sleep(0.01)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mine: int) -> None:
        while said := await reader.read(65_536):
            if mine == self._generation and not self.closed:
                writer.write(said)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def network(dsn: str) -> AsyncIterator[tuple[Network, str]]:
    """The network, and the DSN that leads through it."""
    url = urlsplit(dsn)
    where = {name: values[0] for name, values in parse_qs(url.query).items()}
    between = Network(f"{where['host']}/.s.PGSQL.{where['port']}")
    server = await asyncio.start_server(between.carry, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield between, f"postgresql://postgres@127.0.0.1:{port}{url.path}"
    finally:
        server.close()
        await between.end()

"""The worker's side of the server: starts it by exec, gives orders, hears reports. Every process ends with an Exit."""

import asyncio
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Final, Self

from ostinato.handler import Handler, Isolation
from ostinato_worker.isolation.environment import clean
from ostinato_worker.isolation.outcomes import CannotStart, Exit

LARGEST: Final = 65_536
# The path of the worker, which may have come from its command line.
BOOT: Final = (
    "import json, sys; control, worker, path, modules = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from ostinato_worker.isolation.server import main; main(control, worker, modules)"
)
LOST: Final = Exit(None, reason="the server that had forked it died")


class Forked:
    """One child."""

    def __init__(self, server: "Forkserver", number: int, line: socket.socket) -> None:
        self._server = server
        self._number = number
        self.line = line
        self.pid: int | None = None
        self.exited: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()

    def signal(self, number: int) -> None:
        """To all of its process group, by the server, which alone knows that it has not been reaped."""
        if not self.exited.done():
            self._server.post({"signal": self._number, "number": number})

    def give_up(self) -> None:
        """Not even SIGKILL was heard: the server itself must hang."""
        if not self.exited.done():
            self._server.kill()


class Forkserver:
    def __init__(self, process: Process, control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._numbers = count()
        self._forked: dict[int, Forked] = {}
        self._orders: deque[tuple[bytes, list[int]]] = deque()
        self._loop = asyncio.get_running_loop()
        self.lost = False

    @classmethod
    async def start(cls, modules: Sequence[str], keep_env: Collection[str]) -> Self:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            arguments = json.dumps([theirs.fileno(), os.getpid(), sys.path, list(modules)])
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", BOOT, arguments),
                stdin=DEVNULL,
                stdout=2,
                env=clean(os.environ, keep_env),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        server = cls(process, ours)
        try:
            await server._wait_until_ready()
        except BaseException:
            await server.close(0)
            raise
        return server

    @property
    def pid(self) -> int:
        return self._process.pid

    async def close(self, grace: float) -> None:
        """It ends what is left and itself."""
        if self._control.fileno() >= 0:
            self._lose(self._control)
        try:
            await asyncio.wait_for(self._process.wait(), grace)
        except TimeoutError:
            self.kill()
            await self._process.wait()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    def fork(self, handler: Handler, isolation: Isolation) -> Forked:
        ours, theirs = socket.socketpair()
        number = next(self._numbers)
        forked = Forked(self, number, ours)
        if self.lost:
            # The race: it was there when the caller asked for it.
            _settle(forked, LOST)
            theirs.close()
            return forked
        self._forked[number] = forked
        order = {
            "fork": number,
            "name": handler.name,
            "version": handler.version,
            "memory": isolation.memory,
            "cpu": None if isolation.cpu is None else isolation.cpu.total_seconds(),
        }
        self.post(order, theirs.detach())
        return forked

    def post(self, order: dict[str, Any], *descriptors: int) -> None:
        """Give an order, and the descriptors away."""
        self._orders.append((json.dumps(order).encode(), list(descriptors)))
        self._send()

    def _send(self) -> None:
        while self._orders:
            text, descriptors = self._orders[0]
            try:
                socket.send_fds(self._control, [text], descriptors)
            except BlockingIOError:
                self._loop.add_writer(self._control, self._send)
                return
            except OSError:
                pass  # It has died, which the next report tells.
            self._orders.popleft()
            for descriptor in descriptors:
                os.close(descriptor)
        if self._control.fileno() >= 0:
            self._loop.remove_writer(self._control)

    async def _wait_until_ready(self) -> None:
        said = await self._loop.sock_recv(self._control, LARGEST)
        if not said:
            raise CannotStart(f"the server for isolated jobs ended at once, with code {await self._process.wait()}")
        report = json.loads(said)
        if "failed" in report:
            raise CannotStart(report["failed"])
        self._loop.add_reader(self._control, self._hear)

    def _hear(self) -> None:
        try:
            said = self._control.recv(LARGEST)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if not said:
            self._lose(self._control)
            return
        report = json.loads(said)
        if "forked" in report:
            self._forked[report["forked"]].pid = report["pid"]
        elif forked := self._forked.pop(report.pop("exited"), None):
            _settle(forked, Exit(**report))

    def _lose(self, control: socket.socket) -> None:
        """It has died, or is told to end. Its children die with it; what these had started must be killed by us."""
        self.lost = True
        self._loop.remove_reader(control)
        self._loop.remove_writer(control)
        control.close()
        self._send()  # Closes what was still to be given away.
        for forked in self._forked.values():
            if forked.pid is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(forked.pid, signal.SIGKILL)
            _settle(forked, LOST)
        self._forked.clear()


def _settle(forked: Forked, exit_: Exit) -> None:
    if not forked.exited.done():
        forked.exited.set_result(exit_)

"""The program that forks: one thread, handlers' modules imported, no secret, nothing open but its line to the worker.

worker → server   {"fork": n, …} with the child's end of its line;  {"signal": n, "number": 15}
server → worker   {"ready"} or {"failed": why};  {"forked": n, "pid"};  {"exited": n, …} with what an Exit says

It ends, with all below it, when the worker closes the line or dies.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NoReturn

from ostinato_worker.isolation import child, limits, linux, oom
from ostinato_worker.isolation.handlers import Handlers, NotImportable, find_handlers

LARGEST: Final = 65_536
STANDARD: Final = {0, 1, 2}
INHERITED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)


@dataclass(slots=True)
class Child:
    number: int
    pid: int
    oom_kills: int = field(default_factory=oom.kills)


class Server:
    def __init__(self, control: socket.socket, handlers: Handlers) -> None:
        self._control = control
        self._handlers = handlers
        self._children: dict[int, Child] = {}  # by number
        self._orphans: dict[int, set[int]] = {}  # pid of one that left its group: whose it may be
        self._woken, self._waker = socket.socketpair()
        for end in (self._woken, self._waker):
            end.setblocking(False)

    def run(self) -> None:
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Who stops the worker's whole group means the worker, which finishes its jobs first.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._say({"ready": True})
        poll = select.poll()  # Not epoll: its descriptor would be shared with the children.
        poll.register(self._control, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._woken.fileno() in ready:
                self._woken.recv(LARGEST)
                self._reap()
            if self._control.fileno() in ready and not self._obey():
                return

    def end(self) -> None:
        """Kill all that is left and wait for it."""
        for each in self._children.values():
            _kill_group(each.pid, signal.SIGKILL)
        while True:
            for pid in linux.children():
                os.kill(pid, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def _obey(self) -> bool:
        """One order of the worker's; whether there may be more."""
        try:
            text, descriptors, _, _ = socket.recv_fds(self._control, LARGEST, 1, socket.MSG_CMSG_CLOEXEC)
        except ConnectionError:
            return False
        if not text:
            return False
        order = json.loads(text)
        if "fork" in order:
            self._fork(order, descriptors[0])
        elif order["signal"] in self._children:
            _kill_group(self._children[order["signal"]].pid, order["number"])
        return True

    def _fork(self, order: dict[str, Any], line: int) -> None:
        number, key = order["fork"], (order["name"], order["version"])
        try:
            if key not in self._handlers:
                self._say({"exited": number, "code": None, "reason": f"no module holds the handler {key}"})
                return
            us = os.getpid()
            pid = os.fork()
            if pid == 0:
                self._become_child(us, order, line)
            self._children[number] = Child(number, pid)
            self._say({"forked": number, "pid": pid})
        except OSError as error:
            self._say({"exited": number, "code": None, "reason": f"cannot fork: {error}"})
        finally:
            os.close(line)

    def _become_child(self, parent: int, order: dict[str, Any], line: int) -> NoReturn:
        try:
            os.setsid()
            linux.die_with_parent(parent)
            signal.set_wakeup_fd(-1)
            for number in INHERITED:
                signal.signal(number, signal.SIG_DFL)
            for ours in (self._control, self._woken, self._waker):
                ours.close()
            handler = self._handlers[order["name"], order["version"]]
            child.run(handler, socket.socket(fileno=line), partial(limits.limit, order["memory"], order["cpu"]))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def _reap(self) -> None:
        """Whoever has ended. A child's group ends first: once it is reaped, its number may be another's."""
        by_pid = {each.pid: each for each in self._children.values()}
        self._notice_orphans()
        for pid in _ended():
            if pid in by_pid:
                self._end(by_pid[pid])
            else:
                os.waitpid(pid, 0)
                self._orphans.pop(pid, None)
        self._kill_orphans()

    def _end(self, ended: Child) -> None:
        _kill_group(ended.pid, signal.SIGKILL)
        _, status, used = os.wait4(ended.pid, 0)
        del self._children[ended.number]
        code = os.waitstatus_to_exitcode(status)
        facts = {
            "code": code,
            "cpu": used.ru_utime + used.ru_stime,
            "oom_killed": code == -signal.SIGKILL and oom.kills() > ended.oom_kills,
        }
        self._say({"exited": ended.number, **facts})

    def _notice_orphans(self) -> None:
        """Grandchildren that lost their parent become ours, also those in a session of their own."""
        known = {each.pid for each in self._children.values()} | self._orphans.keys()
        for pid in linux.children() - known:
            self._orphans[pid] = set(self._children)

    def _kill_orphans(self) -> None:
        """When each attempt is over whose it may be."""
        for pid, suspects in self._orphans.items():
            if suspects.isdisjoint(self._children):
                os.kill(pid, signal.SIGKILL)

    def _say(self, report: dict[str, Any]) -> None:
        # The worker may be gone; then the next look at the line ends us.
        with suppress(ConnectionError):
            self._control.send(json.dumps(report).encode())


def _kill_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        # It has been forked, but has not made its session yet; or nobody is left.
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _ended() -> Iterator[int]:
    seen = set()
    while True:
        try:
            info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if info is None or info.si_pid in seen:
            return
        seen.add(info.si_pid)
        yield info.si_pid


def _blind(kept: set[int]) -> None:
    """What modules opened when they were imported leads nowhere from now on: no two attempts share a connection.

    Closed, its number would soon be another file's, and the object that still holds it would write there.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if int(name) not in kept | {nowhere}:
                os.fstat(int(name))
                os.dup2(nowhere, int(name), inheritable=False)
    os.close(nowhere)


def main(control_fd: int, worker: int, modules: Sequence[str]) -> None:
    control = socket.socket(fileno=control_fd)
    control.set_inheritable(False)
    # While modules are imported nobody looks at the line.
    linux.die_with_parent(worker)
    try:
        handlers = find_handlers(modules)
    except NotImportable as error:
        traceback.print_exc()
        control.send(json.dumps({"failed": str(error)[: LARGEST // 8]}).encode())
        sys.exit(1)
    linux.outlive_parent()
    linux.adopt_orphans()
    _blind(STANDARD | {control_fd})
    gc.freeze()  # What is there now stays: the children need no copies of its pages.
    server = Server(control, handlers)
    try:
        server.run()
    finally:
        server.end()

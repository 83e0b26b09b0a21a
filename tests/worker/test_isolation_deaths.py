"""The server that forks dies, the worker dies, and after thousands of attempts nothing has piled up."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from ostinato.failures import Code, JobError, TransientError
from ostinato_worker.isolation import Isolator, Stopped
from tests.worker import jobs
from tests.worker.attempts import Try, Watch, children_of, descriptors_of

# A worker of its own, which says what its attempt said and is then killed.
WORKER = """
import asyncio, os
from ostinato_worker.isolation import Isolator, Stopped
from tests.worker import jobs
from tests.worker.attempts import Try

async def main():
    isolator = Isolator(["tests.worker.jobs"])
    attempt = Try(isolator, jobs.deaf, {"ignores": ["SIGTERM", "SIGHUP"]})
    running = attempt.begin()
    print(*await attempt.said(), isolator.pid, flush=True)
    await running

asyncio.run(main())
"""


async def test_attempts_fail_with_their_server_and_the_next_one_has_another(isolator: Isolator) -> None:
    attempts = [Try(isolator, jobs.deaf, {"ignores": ["SIGTERM"]}) for _ in range(2)]
    running = [attempt.begin() for attempt in attempts]
    watches = [Watch(*await attempt.said()) for attempt in attempts]
    server = isolator.pid
    assert server is not None

    os.kill(server, signal.SIGKILL)
    died = await asyncio.gather(*running, return_exceptions=True)

    assert [(type(each), getattr(each, "code", None)) for each in died] == [(TransientError, Code.PROCESS_DIED)] * 2
    assert await Try(isolator, jobs.deep_breath).end() == "alive"
    assert isolator.pid != server
    for watch in watches:
        await watch.ended()


@pytest.mark.parametrize("how", ["dies", "is stopped"])
async def test_a_worker_that_is_slow_to_answer_hears_all_the_same_that_it_ended(isolator: Isolator, how: str) -> None:
    attempt = Try(isolator, jobs.asks_in_vain)
    running = attempt.begin()
    pid = await attempt.said()
    assert await attempt.said() == "asked"

    if how == "dies":
        os.kill(pid, signal.SIGKILL)
    else:
        attempt.ctx.cancelled.set("timeout")

    with pytest.raises(TransientError if how == "dies" else Stopped):
        await running


async def test_a_server_that_was_killed_while_nothing_ran_is_replaced(isolator: Isolator) -> None:
    watch = Watch(isolator.pid or 0)
    os.kill(isolator.pid or 0, signal.SIGKILL)
    await watch.ended()

    answers = [Try(isolator, jobs.deep_breath).begin() for _ in range(4)]
    results = await asyncio.gather(*answers, return_exceptions=True)

    # The worker may not have heard yet: then the attempt fails, and never hangs.
    assert {str(result) for result in results} <= {"alive", "the server that had forked it died"}
    assert await Try(isolator, jobs.deep_breath).end() == "alive"


async def test_a_server_that_hangs_does_not_keep_an_attempt_from_being_stopped(isolator: Isolator) -> None:
    attempt = Try(isolator, jobs.deaf, {"ignores": ["SIGTERM"]})
    running = attempt.begin()
    watch = Watch(*await attempt.said())
    os.kill(isolator.pid or 0, signal.SIGSTOP)

    attempt.ctx.cancelled.set("timeout")
    with pytest.raises(Exception, match="timeout: the server that had forked it died"):
        await running

    await watch.ended()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_the_whole_of_a_worker_does_not_end_its_server(isolator: Isolator, number: int) -> None:
    server = isolator.pid

    os.kill(server or 0, number)

    assert await Try(isolator, jobs.deep_breath).end() == "alive"
    assert isolator.pid == server


async def test_nothing_outlives_a_worker_that_is_killed() -> None:
    async with worker() as (process, pids):
        watch = Watch(*pids)

        process.kill()

        await watch.ended()


async def test_no_attempt_outlives_a_worker_that_is_killed_together_with_its_server() -> None:
    async with worker() as (process, pids):
        attempt, grandchild, server = pids
        watch = Watch(attempt)

        os.kill(process.pid, signal.SIGSTOP)  # It must not see its server die.
        os.kill(server, signal.SIGKILL)

        await watch.ended()
        os.kill(grandchild, signal.SIGKILL)  # What the handler itself started, nobody was left to end.


@asynccontextmanager
async def worker() -> AsyncIterator[tuple[Any, list[int]]]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", WORKER, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process, [int(pid) for pid in (await process.stdout.readline()).split()]
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def test_many_attempts_leave_no_zombie_and_no_descriptor(isolator: Isolator) -> None:
    server = isolator.pid or 0
    await run_many(isolator, 8)
    before = descriptors_of(os.getpid()), descriptors_of(server)

    await run_many(isolator, 300)

    assert (descriptors_of(os.getpid()), descriptors_of(server)) == before
    assert children_of(server) == []


async def run_many(isolator: Isolator, attempts: int, beside: int = 8) -> None:
    """Most end well, one in ten does not."""
    slots = asyncio.Semaphore(beside)

    async def one(number: int) -> None:
        async with slots:
            if number % 10 == 0:
                with suppress(JobError):
                    await Try(isolator, jobs.dies, {"how": "SIGKILL"}).end()
            else:
                await Try(isolator, jobs.echo, {"to": "ada"}).end()

    await asyncio.gather(*(one(number) for number in range(attempts)))

"""Stopping an attempt in a process of its own: asked first, then made to."""

from typing import Any

import pytest

from ostinato.failures import TransientError
from ostinato_worker.isolation import Isolator, Stopped
from tests.worker import jobs
from tests.worker.attempts import Try, Watch, is_stopped


async def test_an_asynchronous_handler_is_told_why_and_its_task_is_cancelled(isolator: Isolator) -> None:
    attempt = Try(isolator, jobs.waits)
    running = attempt.begin()
    await attempt.said()

    attempt.ctx.cancelled.set("timeout")
    with pytest.raises(Stopped) as stopped:
        await running

    assert (stopped.value.reason, str(stopped.value)) == ("timeout", "timeout")
    assert ("emit", "told: timeout") in attempt.line.noted


async def test_a_synchronous_handler_that_listens_may_finish(isolator: Isolator) -> None:
    attempt = Try(isolator, jobs.waits_sync)
    running = attempt.begin()
    await attempt.said()

    attempt.ctx.cancelled.set("shutdown")

    assert await running == "told: shutdown"


@pytest.mark.parametrize(
    ("payload", "signal"),
    [
        ({}, "killed by signal 15 (SIGTERM)"),
        ({"ignores": ["SIGTERM", "SIGINT", "SIGHUP"]}, "killed by signal 9 (SIGKILL)"),
        ({"stops": True}, "killed by signal 9 (SIGKILL)"),
    ],
)
async def test_a_handler_that_does_not_listen_is_killed_with_all_it_started(
    isolator: Isolator, payload: Any, signal: str
) -> None:
    attempt = Try(isolator, jobs.deaf, payload)
    running = attempt.begin()
    watch = Watch(*await attempt.said())

    attempt.ctx.cancelled.set("cancelled")
    with pytest.raises(Stopped, match=r"cancelled: ") as stopped:
        await running

    assert str(stopped.value) == f"cancelled: {signal}"
    await watch.ended()


async def test_an_attempt_that_was_stopped_before_it_began_does_not_run(isolator: Isolator) -> None:
    attempt = Try(isolator, jobs.waits)
    attempt.ctx.cancelled.set("shutdown")

    with pytest.raises(Stopped, match="shutdown"):
        await attempt.end()


async def test_a_module_that_takes_forever_to_import_does_not_keep_an_attempt_from_being_stopped() -> None:
    isolator = Isolator(["tests.worker.endless"])
    attempt = Try(isolator, jobs.echo)
    running = attempt.begin()

    attempt.ctx.cancelled.set("timeout")
    with pytest.raises(Stopped, match="timeout"):
        await running

    await isolator.close()


async def test_a_worker_that_no_longer_waits_leaves_no_process(isolator: Isolator) -> None:
    attempt = Try(isolator, jobs.deaf, {"stops": True})
    running = attempt.begin()
    pids = await attempt.said()
    watch = Watch(*pids)
    await is_stopped(pids[0])

    running.cancel()

    await watch.ended()


async def test_closing_ends_what_still_runs() -> None:
    isolator = Isolator(["tests.worker.jobs"])
    attempt = Try(isolator, jobs.deaf, {"ignores": ["SIGTERM"]})
    running = attempt.begin()
    watch = Watch(*await attempt.said())

    await isolator.close()

    await watch.ended()
    with pytest.raises(TransientError, match="died"):
        await running
    with pytest.raises(TransientError, match="closed"):
        await Try(isolator, jobs.deep_breath).end()

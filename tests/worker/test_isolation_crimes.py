"""Whatever a handler does to its process, the attempt ends, with a reason, and nothing is left of it."""

from typing import Any

import pytest

from ostinato.failures import Code, TransientError
from ostinato_worker.isolation import Isolator
from tests.worker import jobs
from tests.worker.attempts import Try, Watch, children_of

FRAME = len(b"[1]").to_bytes(4, "big").hex() + b"[1]".hex()
NAMELESS = len(b"{}").to_bytes(4, "big").hex() + b"{}".hex()


@pytest.mark.parametrize("payload", [{}, {"runs_away": True}, {"keeps_line": True}])
async def test_what_a_handler_left_running_ends_with_it(isolator: Isolator, payload: Any) -> None:
    attempt = Try(isolator, jobs.leaves_behind, payload)
    running = attempt.begin()
    pids = await attempt.said()
    watch = Watch(*pids)

    assert await running == pids[1]

    await watch.ended()
    assert await Try(isolator, jobs.deep_breath).end() == "alive"
    assert children_of(isolator.pid or 0) == []


async def test_what_stays_in_its_group_ends_at_once_whoever_runs_beside(isolator: Isolator) -> None:
    beside = Try(isolator, jobs.waits)
    other = beside.begin()
    await beside.said()
    attempt = Try(isolator, jobs.leaves_behind)
    running = attempt.begin()
    watch = Watch(*await attempt.said())

    await running

    await watch.ended()
    assert not other.done()
    beside.ctx.cancelled.set("shutdown")
    await beside.asked_to_end(other)


async def test_what_ran_away_from_one_attempt_outlives_no_other_that_ran_beside_it(isolator: Isolator) -> None:
    beside = Try(isolator, jobs.waits)
    other = beside.begin()
    await beside.said()
    attempt = Try(isolator, jobs.leaves_behind, {"runs_away": True})
    watch = Watch(await attempt.end())

    beside.ctx.cancelled.set("timeout")
    await beside.asked_to_end(other)

    await watch.ended()


@pytest.mark.parametrize("handler", [jobs.forks, jobs.forks_async])
async def test_a_handler_that_forks_and_returns_in_both_has_returned_once(isolator: Isolator, handler: Any) -> None:
    for _ in range(5):
        assert await Try(isolator, handler).end() == "parent"


@pytest.mark.parametrize("garbage", ["ffffffff00", "00000002" + b"no".hex(), FRAME, NAMELESS])
async def test_garbage_on_the_line_ends_the_attempt(isolator: Isolator, garbage: str) -> None:
    with pytest.raises(TransientError, match="no frame") as ended:
        await Try(isolator, jobs.garbage, {"bytes": garbage}).end()

    assert ended.value.code == Code.PROCESS_DIED


@pytest.mark.parametrize("how", ["close", "shutdown"])
async def test_a_handler_that_hangs_up_and_goes_on_is_killed(isolator: Isolator, how: str) -> None:
    with pytest.raises(TransientError, match="closed its line to the worker and went on") as ended:
        await Try(isolator, jobs.hangs_up, {"how": how}).end()

    assert ended.value.code == Code.PROCESS_DIED


async def test_a_process_that_cannot_end_is_killed_and_its_answer_stands(
    isolator: Isolator, caplog: pytest.LogCaptureFixture
) -> None:
    assert await Try(isolator, jobs.lingers).end() == "done"

    assert children_of(isolator.pid or 0) == []
    assert "did not end" in caplog.text

"""One attempt of a handler, by the worker's own crew and pipeline, on a job that is in no database."""

import asyncio
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from pydantic_core import from_json

from ostinato.durations import Duration
from ostinato.errors import InvalidArgument
from ostinato.handler import Handler
from ostinato.lifecycle import State
from ostinato.names import check_namespace, check_queue
from ostinato.newjob import LARGEST, check_integer, check_timeout, encode_payload
from ostinato.payload import encode_object, encode_value
from ostinato.settings import Settings
from ostinato.store.job import Claimed
from ostinato.testing.clock import Clock
from ostinato.testing.line import NotedLine
from ostinato.testing.outcome import Outcome
from ostinato.testing.transaction import LentTransaction, check_tx
from ostinato.testing.watched import Watched
from ostinato_worker.crew import Crew
from ostinato_worker.options import Options
from ostinato_worker.pipeline import Pipeline
from ostinato_worker.registry import Registry
from ostinato_worker.tally import Tally
from ostinato_worker.verdict import Committed, Completed, Failed, Snoozed, Stopped, Verdict

__all__ = ["Outcome", "run_job"]

STOP_GRACE: Final = 1.0  # seconds that a handler whose time is up may take to end


async def run_job(
    handler: Handler | type,
    payload: Any = None,
    *,
    attempt: int = 1,
    max_attempts: int | None = None,
    timeout: Duration | None = None,  # noqa: ASYNC109  of the job
    queue: str | None = None,
    namespace: str = "default",
    context: Any = None,
    last_progress: Any = None,
    state: Any = None,
    tx: Any = None,
    clock: Clock | None = None,
) -> Outcome:
    """Run a `@job` handler on a payload, as a worker would: read the payload, call hooks and handler, judge.

    attempt, max_attempts, timeout, queue, namespace, context, last_progress     what the job would say of itself
    state     what the handler finds in `ctx.state`
    tx        an asyncpg connection in a transaction, for a transactional handler; nothing is committed
    clock     what `ctx.now()` says

    In a test that is not asynchronous: asyncio.run(run_job(…)).
    """
    clock = clock or Clock()
    if not isinstance(handler, Handler):
        raise InvalidArgument("handler", handler, "it must be a function or class under @job")
    job = Claimed(
        id=uuid4(),
        lease=1,
        queue=check_queue(queue or handler.queue or "default"),
        job_type=handler.name,
        job_version=handler.version,
        payload=encode_payload(payload),
        priority=0,
        run_at=clock.now(),
        attempt=check_integer("attempt", attempt, 1, LARGEST),
        max_attempts=None if max_attempts is None else check_integer("max_attempts", max_attempts, 1, LARGEST),
        timeout=None if timeout is None else check_timeout(timeout),
        context=None if context is None else encode_object("context", context),
        progress=encode_value("last_progress", last_progress),
        schedule_id=None,
    )
    line = NotedLine(check_namespace(namespace), state, clock, isolated=handler.isolation is not None)
    watched = Watched.of(handler)
    lent = LentTransaction(check_tx(handler, tx))
    verdict = await _attempt(job, Pipeline(Registry([watched]), line, lent, None, _options(job, line)))
    return _outcome(verdict, watched, line, clock)


def _options(job: Claimed, line: NotedLine) -> Options:
    defaults = Settings()
    return Options(
        queues=[job.queue],
        namespace=line.namespace,
        concurrency=1,
        max_attempts=defaults.max_attempts,
        poison=defaults.poison,
        lease=defaults.lease,
        stop_grace=timedelta(seconds=STOP_GRACE),
    )


async def _attempt(job: Claimed, pipeline: Pipeline) -> Verdict:
    ended: asyncio.Queue[Verdict] = asyncio.Queue()
    crew = Crew(
        pipeline,
        1,
        stop_grace=STOP_GRACE,
        finished=lambda _, verdict: ended.put_nowait(verdict),
        freed=lambda: None,
        tally=Tally(),
    )
    crew.take([job])
    try:
        return await ended.get()
    finally:
        crew.abandon()


def _outcome(verdict: Verdict, watched: Watched, line: NotedLine, clock: Clock) -> Outcome:
    return Outcome(
        **_facts(verdict, watched, clock),
        raised=watched.raised,
        progress=line.progressed,
        events=line.emitted,
        enqueued=line.enqueued,
    )


def _facts(verdict: Verdict, watched: Watched, clock: Clock) -> dict[str, Any]:
    match verdict:
        case Completed(text) | Committed(text):
            return {"state": State.COMPLETED, "output": None if text is None else from_json(text)}
        case Failed(code, message, _, permanent=True):
            return {"state": State.DEAD_LETTERED, "code": code, "message": message}
        case Failed(code, message, delay):
            return {"state": State.RETRYING, "code": code, "message": message, "delay": delay}
        case Snoozed(delay, until):
            return {"state": State.PENDING, "delay": delay if until is None else max(until - clock.now(), timedelta(0))}
        case Stopped(message):
            return {"state": State.CANCELLED, "message": message}
        case _:  # given back, or its lease lost: nobody here does that
            raise RuntimeError(f"the attempt ended as {verdict}")

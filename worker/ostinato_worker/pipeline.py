"""An attempt from claim to verdict: resolve → validate → start its time → perform → normalise. Recorded elsewhere."""

import asyncio
from typing import Any

from ostinato.context import Line
from ostinato.failures import Code, PermanentError
from ostinato.handler import Handler
from ostinato.store import Claimed
from ostinato_worker import hooks
from ostinato_worker.attempt import LOST, TIMEOUT, Attempt
from ostinato_worker.isolation import Isolator
from ostinato_worker.judge import judge, said, timed_out
from ostinato_worker.options import Options
from ostinato_worker.output import encode_output
from ostinato_worker.registry import Registry
from ostinato_worker.threads import in_thread
from ostinato_worker.transactions import Transactions
from ostinato_worker.verdict import DONE, Committed, Completed, Lost, Released, Verdict


class Pipeline:
    def __init__(
        self,
        registry: Registry,
        line: Line,
        transactions: Transactions,
        isolator: Isolator | None,
        options: Options,
    ) -> None:
        self._registry = registry
        self._isolator = isolator
        self._line = line
        self._transactions = transactions
        self._options = options

    def resolve(self, job: Claimed) -> Attempt:
        return Attempt(job, self._registry.find(job.job_type, job.job_version), self._line, self._options)

    async def run(self, attempt: Attempt) -> Verdict:
        """Whatever happens, there is a verdict: an attempt without one would keep its job for ever."""
        handler = attempt.handler
        if handler is None:  # it was unregistered between claim and start
            return Released()
        try:
            try:
                attempt.bound = handler.bind_hooks() if handler.isolation else handler.bind()
                payload = _read(handler, attempt.job)
                if attempt.bound.hooks:
                    await hooks.before(attempt)
                verdict = self._normalise(attempt, await self._perform(attempt, handler, payload))
            except GeneratorExit:
                raise
            except BaseException as error:
                verdict = judge(attempt, error)
            attempt.verdict = verdict
            if attempt.bound and attempt.bound.hooks:
                await hooks.after(attempt, verdict, self._options.stop_grace.total_seconds())
            return verdict
        except GeneratorExit as error:  # also of whoever closes this coroutine: then it must not wait for anything
            return attempt.verdict or judge(attempt, error)

    async def _perform(self, attempt: Attempt, handler: Handler, payload: Any) -> Any:
        assert attempt.bound is not None
        if attempt.ctx.cancelled.is_set():  # while a hook ran, which did not mind
            raise asyncio.CancelledError
        attempt.begun = True
        if handler.transaction:
            return await self._transactions.perform(attempt, payload)
        if handler.isolation and self._isolator:
            output = await self._isolator.perform(handler, attempt.job, attempt.ctx)
        elif handler.is_async:
            output = await attempt.bound.call(payload, attempt.ctx)
        else:
            output = await in_thread(attempt.bound.call, payload, attempt.ctx)
        attempt.returns(output)
        return output

    def _normalise(self, attempt: Attempt, output: Any) -> Verdict:
        """A handler that returns has completed, also if it was called off: only not too late."""
        reason = attempt.ctx.cancelled.reason
        if reason == TIMEOUT:
            return timed_out(attempt)
        if reason == LOST:
            return Lost()
        if isinstance(output, Committed):
            return output
        return DONE if output is None else Completed(encode_output(output))


def _read(handler: Handler, job: Claimed) -> Any:
    try:
        return handler.read(job.payload)
    except BaseException as error:  # a validator of theirs may raise anything
        why = str(error) if isinstance(error, ValueError) else said(error)
        raise PermanentError(why[:1_000], code=Code.PAYLOAD_INVALID) from None

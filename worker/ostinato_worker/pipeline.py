"""An attempt from claim to verdict: resolve → validate → start its time → perform → normalise. Recorded elsewhere."""

from typing import Any

from ostinato.context import Line
from ostinato.errors import InvalidArgument
from ostinato.failures import Code
from ostinato.handler import Handler
from ostinato.payload import encode_value
from ostinato.store import Claimed
from ostinato_worker import hooks
from ostinato_worker.attempt import LOST, TIMEOUT, Attempt
from ostinato_worker.isolation import Isolator
from ostinato_worker.judge import judge, said, timed_out
from ostinato_worker.options import Options
from ostinato_worker.registry import Registry
from ostinato_worker.threads import in_thread
from ostinato_worker.transactions import Transactions
from ostinato_worker.verdict import DONE, Committed, Completed, Failed, Lost, Released, Verdict


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
            payload = handler.read(attempt.job.payload)
        except Exception as error:  # a validator of theirs may raise anything
            why = str(error) if isinstance(error, ValueError) else said(error)
            return Failed(Code.PAYLOAD_INVALID, why[:1_000], permanent=True)
        try:
            attempt.bound = handler.bind_hooks() if handler.isolation else handler.bind()
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

    async def _perform(self, attempt: Attempt, handler: Handler, payload: Any) -> Any:
        assert attempt.bound is not None
        if handler.isolation and self._isolator:
            return await self._isolator.perform(handler, attempt.job, attempt.ctx)
        if handler.transaction:
            return await self._transactions.perform(attempt, payload)
        if handler.is_async:
            output = await attempt.bound.call(payload, attempt.ctx)
        else:
            output = await in_thread(attempt.bound.call, payload, attempt.ctx)
        attempt.returned = True
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
        if output is None:
            return DONE
        try:
            encode_value("output", output)
        except InvalidArgument as error:
            return Failed(Code.OUTPUT_INVALID, str(error), permanent=True)
        return Completed(output)

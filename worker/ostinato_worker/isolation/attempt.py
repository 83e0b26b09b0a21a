"""The worker's side of one attempt: a conversation with the child, and the ladder by which it is stopped."""

import asyncio
import signal
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from pydantic_core import from_json

from ostinato.context import Context
from ostinato.failures import Code, TransientError
from ostinato.handler import Isolation
from ostinato.store.job import Claimed
from ostinato_worker.isolation import frames
from ostinato_worker.isolation.forkserver import Forked
from ostinato_worker.isolation.frames import Frame, Garbage
from ostinato_worker.isolation.line import JOB
from ostinato_worker.isolation.outcomes import Exit, Stopped, died, out_of_memory
from ostinato_worker.isolation.raised import describe_refusal, rebuild

# After the process has ended its line does too, unless a grandchild has run away with it.
LAST_WORDS: Final = 1.0


class Attempt:
    def __init__(self, forked: Forked, isolation: Isolation, ctx: Context, grace: float) -> None:
        self._forked = forked
        self._isolation = isolation
        self._ctx = ctx
        self._grace = grace

    async def run(self, job: Claimed) -> Any:
        try:
            with self._forked.line:
                return await self._run(job)
        finally:
            self._forked.signal(signal.SIGKILL)  # Nothing is left of it, even if we were cancelled ourselves.

    async def _run(self, job: Claimed) -> Any:
        reader, writer = await asyncio.open_unix_connection(sock=self._forked.line)
        writer.write(frames.encode(self._first(job)))
        talk = asyncio.create_task(self._talk(reader, writer))
        ladder = asyncio.create_task(self._climb(writer))
        try:
            answer, wrong, exit_ = await self._end(talk)
            return self._outcome(answer, wrong, exit_)
        finally:
            writer.transport.abort()
            for task in (talk, ladder):
                task.cancel()
            await asyncio.wait((talk, ladder))

    def _first(self, job: Claimed) -> Frame:
        text = JOB.dump_json(job).decode()
        ahead = (self._ctx.now() - datetime.now(UTC)).total_seconds()
        return {
            "job": text,
            "max_attempts": self._ctx.max_attempts,
            "namespace": self._ctx.namespace,
            "ahead": ahead,
        }

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Frame | None:
        """Do what the child asks for, one thing after the other, until it gives its answer; None if it gives none."""
        with suppress(ConnectionError):
            while (frame := await frames.read(reader)) is not None:
                if "ask" not in frame:
                    writer.write(frames.encode({"taken": True}))
                    return frame
                writer.write(frames.encode(await self._serve(frame)))
                await writer.drain()
        return None

    async def _serve(self, frame: Frame) -> Frame:
        number = frame.get("number")
        try:
            return {"number": number, "done": await self._do(frame)}
        except Exception as error:  # The child asked; whatever is wrong is for it to handle.
            return {"number": number, "refused": describe_refusal(error)}

    async def _do(self, frame: Frame) -> Any:
        # Of the class, not of the object: the context of a synchronous handler waits in a thread, which we are not.
        match frame["ask"]:
            case "progress":
                return await Context.progress(self._ctx, _value(frame))
            case "emit":
                return await Context.emit(self._ctx, _value(frame))
            case "enqueue":
                options = dict(frame["options"])
                if options.get("run_at") is not None:
                    options["run_at"] = datetime.fromisoformat(options["run_at"])
                made = await Context.enqueue(self._ctx, frame["job_type"], from_json(frame["payload"]), **options)
                return {"id": str(made.id), "created": made.created}
        raise ValueError(f"nobody can {frame['ask']!r}")

    async def _climb(self, writer: asyncio.StreamWriter) -> None:
        """From asking to SIGKILL. What the last step is for: a server that hangs must not hang us."""
        await self._ctx.cancelled.wait()
        writer.write(frames.encode({"stop": self._ctx.cancelled.reason}))
        for number in (signal.SIGTERM, signal.SIGKILL):
            await asyncio.sleep(self._grace)
            self._forked.signal(number)
        await asyncio.sleep(self._grace)
        self._forked.give_up()

    async def _end(self, talk: "asyncio.Task[Frame | None]") -> tuple[Frame | None, str, Exit]:
        """The child's answer, or what is wrong with it, and how the process ended."""
        exited = self._forked.exited
        await asyncio.wait((talk, exited), return_when=asyncio.FIRST_COMPLETED)
        if exited.done():
            await asyncio.wait((talk,), timeout=LAST_WORDS)
        answer, wrong = _said(talk)
        if not wrong:
            await asyncio.wait((exited,), timeout=self._grace)
            wrong = "" if exited.done() else self._went_on(answer)
        return answer, wrong, await self._killed()

    def _went_on(self, answer: Frame | None) -> str:
        """The line is closed, or all is said, and still there is a process."""
        if answer is not None:
            # What is done is done: to try it again would do it twice.
            self._ctx.logger.warning("its process did not end within %s s of its answer, and is killed", self._grace)
            return ""
        return "" if self._ctx.cancelled.is_set() else "it closed its line to the worker and went on"

    async def _killed(self) -> Exit:
        exited = self._forked.exited
        if not exited.done():
            self._forked.signal(signal.SIGKILL)
            await asyncio.wait((exited,), timeout=self._grace)
            self._forked.give_up()
        return await exited

    def _outcome(self, answer: Frame | None, wrong: str, exit_: Exit) -> Any:
        reason = self._ctx.cancelled.reason
        try:
            if answer is not None and "output" in answer:
                return None if answer["output"] is None else from_json(answer["output"])
            failure = self._failure(answer, wrong, exit_)
        except (Garbage, KeyError, TypeError, ValueError) as error:
            failure, answer = _garbled(error), None
        # What the handler says deliberately stands; else the reason is that we stopped it.
        deliberate = answer and answer.get("raised", {}).get("kind", "other") != "other"
        raise failure if reason is None or deliberate else Stopped(reason, exit_.how if answer is None else "")

    def _failure(self, answer: Frame | None, wrong: str, exit_: Exit) -> Exception:
        if wrong:
            return TransientError(wrong, code=Code.PROCESS_DIED)
        if answer is None or "stopped" in answer:
            return died(exit_, self._isolation)
        if "out_of_memory" in answer:
            return out_of_memory(self._isolation)
        return rebuild(answer["raised"])


def _said(talk: "asyncio.Task[Frame | None]") -> tuple[Frame | None, str]:
    if not talk.done():
        return None, ""
    try:
        return talk.result(), ""
    except Garbage as error:
        return None, str(_garbled(error))


def _garbled(what: object) -> TransientError:
    return TransientError(f"it wrote to the worker what is no frame: {str(what)[:200]}", code=Code.PROCESS_DIED)


def _value(frame: Frame) -> Any:
    return None if frame["value"] is None else from_json(frame["value"])

"""`@job`: a function or class becomes the handler of a job type. No I/O, and no list of all: a worker names modules.

@job("send_email", max_attempts=5, timeout="30s")
async def send_email(payload: Email, ctx: Context) -> None: ...

The parameter that is annotated as a Context, or called `ctx`, gets the context; the other one the payload, as the type
that its annotation names. Both may be left out.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Final, Literal

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic_core import from_json

from ostinato.backoff import Backoff, read_backoff
from ostinato.context import Context
from ostinato.durations import Duration, parse_duration
from ostinato.enqueue import enqueue
from ostinato.errors import InvalidArgument
from ostinato.failures import Code, PermanentError
from ostinato.hooks import HOOKS, Hook, check_own_hooks, read_hooks
from ostinato.names import check_job_type, check_queue
from ostinato.newjob import LARGEST, NewJob, check_integer, check_timeout
from ostinato.rates import Rate
from ostinato.signature import read_signature
from ostinato.sizes import Size, parse_size

MOST_MEMORY: Final = 2**60  # bytes: the kernel's own numbers end not far above


@dataclass(frozen=True, slots=True)
class Isolation:
    """Each attempt in an operating-system process of its own. None is no limit."""

    memory: int | None = None  # bytes
    cpu: timedelta | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Handler:
    """A job type, as the worker that serves it knows it."""

    name: str
    version: int
    target: Callable[..., Any]  # the function or class, as it was written
    made_in: str  # a module: `target` may be from another one
    is_class: bool
    is_async: bool  # if not, it runs in a thread
    payload: TypeAdapter[Any] | None  # None: a plain dict
    takes_payload: bool
    context_place: int | None  # which argument is the context, if one is
    queue: str | None
    max_attempts: int | None
    timeout: timedelta | None
    transaction: bool
    isolation: Isolation | None
    max_running: int | None
    rate: Rate | None
    backoff: Backoff
    hooks: Mapping[str, Hook]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function or class itself: for tests, and for other handlers."""
        return self.target(*args, **kwargs)

    @property
    def served(self) -> str:
        """How claims and the workers table call it."""
        return self.name if self.version == 1 else f"{self.name}@{self.version}"

    @property
    def where(self) -> str:
        """Where a person finds it."""
        return f"{self.target.__module__}.{self.target.__qualname__}"

    def enqueue(self, conn: Any, payload: Any = None, **options: Any) -> Any:
        """`ostinato.enqueue` of this type and version, into its queue unless another is given."""
        return enqueue(conn, self.name, payload, **(self._own_options() | options))

    def new(self, payload: Any = None, **options: Any) -> NewJob:
        """The same as one of many, for `enqueue_many`."""
        return NewJob(self.name, payload, **(self._own_options() | options))

    def read(self, text: str) -> Any:
        """The payload as the handler wants it; raises ValueError (pydantic's) if it does not fit."""
        if not self.takes_payload:
            return None
        return from_json(text) if self.payload is None else self.payload.validate_json(text)

    def payload_schema(self) -> dict[str, Any] | None:
        """By which others can refuse a bad payload before it is stored; None says nothing."""
        try:
            return None if self.payload is None else self.payload.json_schema()
        except PydanticInvalidForJsonSchema:
            # A payload may hold what JSON Schema has no word for. The worker can still read it, and alone refuses it.
            return None
        except PydanticUserError as error:
            reason = str(error).partition("\n")[0]
            raise InvalidArgument("payload", self.where, f"pydantic cannot read its type: {reason}") from None

    def bind(self) -> "Bound":
        """What one attempt calls. A class gives each attempt an instance of its own, whose methods may be hooks."""
        if not self.is_class:
            return self._bound_function
        instance = self.target()
        methods = {name: getattr(instance, name) for name in HOOKS if hasattr(instance, name)}
        return self._bound(instance.execute, methods | dict(self.hooks))

    def bind_hooks(self) -> "Bound":
        """The part of an isolated job's attempt that the worker itself has: not even a class is made there."""
        return self._bound_function

    @cached_property
    def _bound_function(self) -> "Bound":
        return self._bound(self.target, self.hooks)

    def _bound(self, function: Callable[..., Any], hooks: Mapping[str, Hook]) -> "Bound":
        return Bound(function, hooks, self.is_async, self.takes_payload, self.context_place)

    def _own_options(self) -> dict[str, Any]:
        return {"queue": self.queue, "job_version": None if self.version == 1 else self.version}


@dataclass(frozen=True, slots=True)
class Bound:
    function: Callable[..., Any]
    hooks: Mapping[str, Hook]
    is_async: bool
    takes_payload: bool
    context_place: int | None

    def call(self, payload: Any, ctx: Context) -> Any:
        """What the handler returns: a coroutine if it is asynchronous, and only then."""
        output = self._call(payload, ctx)
        if not self.is_async and inspect.isawaitable(output):
            raise _unawaited(output)
        return output

    def _call(self, payload: Any, ctx: Context) -> Any:
        if self.context_place is None:
            return self.function(payload) if self.takes_payload else self.function()
        if not self.takes_payload:
            return self.function(ctx)
        return self.function(ctx, payload) if self.context_place == 0 else self.function(payload, ctx)


def job(
    name: str,
    *,
    version: int = 1,
    queue: str | None = None,
    max_attempts: int | None = None,
    timeout: Duration | None = None,
    transaction: bool = False,
    isolation: Literal["process"] | None = None,
    memory: Size | None = None,
    cpu: Duration | None = None,
    max_running: int | None = None,
    rate: str | None = None,
    backoff: Backoff | Duration | Sequence[Duration] | None = None,
    on_start: Hook | None = None,
    on_success: Hook | None = None,
    on_fail: Hook | None = None,
    on_end: Hook | None = None,
) -> Callable[[Callable[..., Any]], Handler]:
    """A handler of the job type `name`.

    version                  a worker claims the versions that it knows; raise it when the payload changes its meaning
    queue                    where `send_email.enqueue(…)` puts it
    max_attempts, timeout    unless a job says otherwise; None is the worker's default
    transaction              `ctx.tx` is a transaction in which the job is completed too: both or nothing
    isolation, memory, cpu   "process": each attempt in a process of its own, with at most so much memory and CPU time
    max_running, rate        in the whole cluster: so many at once, so many starts in a time ("100/m")
    backoff                  `Exponential()`, `Decorrelated()`, `Fixed("5m")`, `Steps(["1s", "1m"])`, or "5m", or a list
    on_start(ctx), on_success(ctx, output), on_fail(ctx, error), on_end(ctx)
                             called around each attempt; what they raise is logged and changes nothing. Those of an
                             isolated job run in the worker, with ctx.state, and not in the attempt's own process
    """
    given_hooks = {"on_start": on_start, "on_success": on_success, "on_fail": on_fail, "on_end": on_end}
    options: dict[str, Any] = {
        "name": check_job_type(name),
        "version": check_integer("version", version, 1, 2**31 - 1),
        "queue": None if queue is None else check_queue(queue),
        "max_attempts": None if max_attempts is None else check_integer("max_attempts", max_attempts, 1, LARGEST),
        "timeout": None if timeout is None else check_timeout(timeout),
        "transaction": transaction,
        "isolation": _isolation(isolation, memory, cpu),
        "max_running": None if max_running is None else check_integer("max_running", max_running, 1, LARGEST),
        "rate": None if rate is None else Rate.parse(rate),
        "backoff": read_backoff(backoff),
        "hooks": read_hooks(given_hooks),
    }
    if not isinstance(transaction, bool):
        raise InvalidArgument("transaction", transaction, "it must be True or False")
    if transaction and isolation is not None:
        raise InvalidArgument(
            "transaction", transaction, "a process of its own has no part in the worker's transaction"
        )

    def decorate(target: Callable[..., Any]) -> Handler:
        signature = read_signature(name, target)
        if transaction and not signature["is_async"]:
            raise InvalidArgument("transaction", transaction, "only an asynchronous handler can use ctx.tx")
        if inspect.isclass(target):
            check_own_hooks(target, isolated=isolation is not None)
        # The module in which `@job` stands.
        made_in = sys._getframe(1).f_globals.get("__name__", "")
        return Handler(target=target, made_in=made_in, **options, **signature)

    return decorate


def _isolation(kind: object, memory: Size | None, cpu: Duration | None) -> Isolation | None:
    if kind is None:
        for argument, value in (("memory", memory), ("cpu", cpu)):
            if value is not None:
                raise InvalidArgument(argument, value, 'only a job with isolation="process" can be limited so')
        return None
    if kind != "process":
        raise InvalidArgument("isolation", kind, 'it must be "process" or None')
    return Isolation(
        memory=None if memory is None else _check_memory(memory),
        cpu=None if cpu is None else _check_cpu(cpu),
    )


def _check_memory(value: Size) -> int:
    size = parse_size("memory", value)
    if size > MOST_MEMORY:
        raise InvalidArgument("memory", value, f"it must be at most {MOST_MEMORY:,} bytes")
    return size


def _check_cpu(value: Duration) -> timedelta:
    cpu = parse_duration("cpu", value)
    if not cpu:
        raise InvalidArgument("cpu", value, "it must be more than 0")
    return cpu


def _unawaited(output: Any) -> PermanentError:
    if inspect.iscoroutine(output):
        output.close()  # Python warns of one that nobody ran.
    advice = "make the handler `async def`; a decorator around it must use functools.wraps"
    return PermanentError(f"it returned what must be awaited: {advice}", code=Code.OUTPUT_INVALID)

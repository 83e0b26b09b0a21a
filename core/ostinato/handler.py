"""`@job`: a function or class becomes the handler of a job type. No I/O, and no list of all: a worker names modules.

@job("send_email", max_attempts=5, timeout="30s")
async def send_email(payload: Email, ctx: Context) -> None: ...

The parameter that is annotated as a Context, or called `ctx`, gets the context; the other one the payload, as the type
that its annotation names. Both may be left out.
"""

import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Final, Literal, NotRequired, get_type_hints, is_typeddict

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic_core import from_json
from typing_extensions import TypedDict

from ostinato.backoff import Backoff, read_backoff
from ostinato.context import Context
from ostinato.durations import Duration, parse_duration
from ostinato.enqueue import enqueue
from ostinato.errors import InvalidArgument
from ostinato.names import check_job_type, check_queue
from ostinato.newjob import LARGEST, NewJob, check_integer, check_timeout
from ostinato.rates import Rate
from ostinato.sizes import Size, parse_size

Hook = Callable[..., Awaitable[None] | None]
HOOKS: Final = ("on_start", "on_success", "on_fail", "on_end")
TAKEN: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
PLAIN: Final = (dict, dict[str, Any], Any, inspect.Parameter.empty)


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
        return None if self.payload is None else self.payload.json_schema()

    def bind(self) -> "Bound":
        """What one attempt calls. A class gives each attempt an instance of its own, whose methods may be hooks."""
        if not self.is_class:
            return self._bound_function
        instance = self.target()
        methods = {name: getattr(instance, name) for name in HOOKS if hasattr(instance, name)}
        return Bound(instance.execute, methods | dict(self.hooks), self.takes_payload, self.context_place)

    def bind_hooks(self) -> "Bound":
        """The part of an isolated job's attempt that the worker itself has: not even a class is made there."""
        return self._bound_function

    @cached_property
    def _bound_function(self) -> "Bound":
        return Bound(self.target, self.hooks, self.takes_payload, self.context_place)

    def _own_options(self) -> dict[str, Any]:
        return {"queue": self.queue, "job_version": None if self.version == 1 else self.version}


@dataclass(frozen=True, slots=True)
class Bound:
    function: Callable[..., Any]
    hooks: Mapping[str, Hook]
    takes_payload: bool
    context_place: int | None

    def call(self, payload: Any, ctx: Context) -> Any:
        """What the handler returns: a coroutine if it is asynchronous."""
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
        "hooks": {hook: function for hook, function in given_hooks.items() if function is not None},
    }
    if transaction and isolation is not None:
        raise InvalidArgument(
            "transaction", transaction, "a process of its own has no part in the worker's transaction"
        )

    def decorate(target: Callable[..., Any]) -> Handler:
        signature = _signature(name, target)
        if transaction and not signature["is_async"]:
            raise InvalidArgument("transaction", transaction, "only an asynchronous handler can use ctx.tx")
        if isolation is not None and signature["is_class"]:
            _check_hooks_of_isolated(target)
        return Handler(target=target, **options, **signature)

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
        memory=None if memory is None else parse_size("memory", memory),
        cpu=None if cpu is None else parse_duration("cpu", cpu),
    )


def _check_hooks_of_isolated(target: Callable[..., Any]) -> None:
    """The instance is in the attempt's process, hooks are called in the worker: they would never meet."""
    if methods := [hook for hook in HOOKS if hasattr(target, hook)]:
        rule = "the hooks of an isolated job run in another process than its class: give @job a function instead"
        raise InvalidArgument(methods[0], target, f"{rule}, {methods[0]}=…")


def _signature(name: str, target: Callable[..., Any]) -> dict[str, Any]:
    is_class = inspect.isclass(target)
    function = getattr(target, "execute", None) if is_class else target
    if not callable(function):
        raise InvalidArgument(name, target, "the handler must be a function, or a class with a method `execute`")
    parameters = list(inspect.signature(function).parameters.values())[1 if is_class else 0 :]
    hints = _hints(function)
    places = [place for place, each in enumerate(parameters) if _is_context(each.name, hints.get(each.name))]
    others = [each for place, each in enumerate(parameters) if place not in places]
    if len(parameters) > 2 or len(places) > 1 or len(others) > 1 or any(each.kind not in TAKEN for each in parameters):
        raise InvalidArgument(name, target, "the handler must take a payload and a context, or less")
    annotation = hints.get(others[0].name, inspect.Parameter.empty) if others else None
    return {
        "is_class": is_class,
        "is_async": inspect.iscoroutinefunction(function),
        "takes_payload": bool(others),
        "payload": None if not others or annotation in PLAIN else _adapter(name, annotation),
        "context_place": places[0] if places else None,
    }


def _is_context(name: str, annotation: Any) -> bool:
    return name == "ctx" or (inspect.isclass(annotation) and issubclass(annotation, Context))


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError as error:
        raise InvalidArgument("annotation", error.name, f"it cannot be resolved in {function.__module__}") from None


def _adapter(name: str, annotation: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(_readable(annotation))
    except PydanticUserError as error:
        reason = str(error).partition("\n")[0]
        raise InvalidArgument(name, annotation, f"pydantic cannot read this as a payload: {reason}") from None


def _readable(annotation: Any) -> Any:
    """Before Python 3.12 pydantic takes only the TypedDict of typing_extensions."""
    if sys.version_info >= (3, 12) or not is_typeddict(annotation) or type(annotation).__module__ != "typing":
        return annotation
    hints = get_type_hints(annotation)
    fields = {name: hint if name in annotation.__required_keys__ else NotRequired[hint] for name, hint in hints.items()}
    return TypedDict(annotation.__name__, fields)  # type: ignore[operator]

"""What `@job` makes of a function or class."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypedDict
from uuid import UUID

import pydantic
import pytest

from ostinato import Context, InvalidArgument, PermanentError, SyncContext, job
from ostinato.failures import Code
from ostinato.handler import Handler
from ostinato.rates import Rate


class Model(pydantic.BaseModel):
    to: str


@dataclass
class Data:
    to: str


class Typed(TypedDict):
    to: str


async def with_model(payload: Model, ctx: Context) -> None: ...
async def with_dataclass(payload: Data) -> None: ...
async def with_typed_dict(payload: Typed, context: Context) -> None: ...
async def with_dict(payload: dict[str, Any], ctx: Any) -> None: ...
async def with_nothing_said(payload, ctx): ...  # type: ignore[no-untyped-def]
def in_a_thread(payload: Model, ctx: SyncContext) -> None: ...
async def context_first(ctx: Context, payload: Model) -> None: ...


class WithExecute:
    async def execute(self, payload: Model, ctx: Context) -> str:
        return payload.to

    def on_start(self, ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("target", "payload"),
    [
        (with_model, Model(to="a")),
        (with_dataclass, Data("a")),
        (with_typed_dict, {"to": "a"}),
        (with_dict, {"to": "a"}),
        (with_nothing_said, {"to": "a"}),
        (in_a_thread, Model(to="a")),
        (context_first, Model(to="a")),
        (WithExecute, Model(to="a")),
    ],
)
def test_the_payload_arrives_as_the_type_that_its_annotation_names(target: Any, payload: Any) -> None:
    assert job("work")(target).read('{"to": "a"}') == payload


@pytest.mark.parametrize("target", [with_model, with_dataclass, with_typed_dict])
def test_a_payload_that_does_not_fit_is_refused_and_the_schema_says_so_too(target: Any) -> None:
    handler = job("work")(target)

    with pytest.raises(ValueError, match="to"):
        handler.read('{"from": "a"}')

    schema = handler.payload_schema()
    assert schema is not None
    assert schema["required"] == ["to"]


async def test_payload_and_context_may_be_left_out_or_change_places() -> None:
    async def nothing() -> str:
        return "called"

    async def context_alone(ctx: Context) -> Any:
        return ctx

    async def swapped(ctx: Context, payload: dict[str, Any]) -> Any:
        return ctx, payload

    assert await job("work")(nothing).bind().call(None, "ctx") == "called"  # type: ignore[arg-type]
    assert await job("work")(context_alone).bind().call(None, "ctx") == "ctx"  # type: ignore[arg-type]
    assert await job("work")(swapped).bind().call({"a": 1}, "ctx") == ("ctx", {"a": 1})  # type: ignore[arg-type]


async def test_a_class_gives_each_attempt_an_instance_of_its_own_with_its_methods_as_hooks() -> None:
    handler = job("work")(WithExecute)

    one, other = handler.bind(), handler.bind()

    assert one.function.__self__ is not other.function.__self__  # type: ignore[attr-defined]
    assert set(one.hooks) == {"on_start"}
    assert await one.call(Model(to="ada"), None) == "ada"  # type: ignore[arg-type]


def test_options_are_read_once() -> None:
    handler = job(
        "work", version=2, max_attempts=3, timeout="10m", isolation="process", memory="512MiB", cpu="1m", rate="100/m"
    )(with_model)

    assert (handler.served, handler.max_attempts, handler.timeout) == ("work@2", 3, timedelta(minutes=10))
    assert handler.isolation is not None
    assert (handler.isolation.memory, handler.isolation.cpu) == (512 * 2**20, timedelta(minutes=1))
    assert handler.rate == Rate(100, timedelta(minutes=1))


def test_the_function_can_still_be_called() -> None:
    def double(payload: dict[str, int]) -> int:
        return payload["n"] * 2

    handler: Handler = job("double")(double)

    assert handler({"n": 21}) == 42


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"name": "send mail"}, "job_type is 'send mail'"),
        ({"version": 0}, "version is 0; it must be a whole number from 1"),
        ({"max_attempts": True}, "max_attempts is True"),
        ({"timeout": "0s"}, "timeout is '0s'; it must be more than 0"),
        ({"queue": "-"}, "queue is '-'"),
        ({"isolation": "thread"}, 'it must be "process" or None'),
        ({"memory": "1GiB"}, 'only a job with isolation="process"'),
        ({"isolation": "process", "memory": "lots"}, "memory is 'lots'; write it as '512MiB'"),
        ({"isolation": "process", "transaction": True}, "no part in the worker's transaction"),
        ({"max_running": 0}, "max_running is 0"),
        ({"rate": "100"}, "rate is '100'; write it as '100/m'"),
        ({"rate": "1/fortnight"}, "write it as '100/m'"),
        ({"rate": "1/0s"}, "write it as '100/m'"),
        ({"backoff": "later"}, "write it as"),
        ({"transaction": "no"}, "transaction is 'no'; it must be True or False"),
        ({"isolation": "process", "memory": 2**80}, "it must be at most 1,152,921,504,606,846,976 bytes"),
        ({"isolation": "process", "cpu": 0}, "cpu is 0; it must be more than 0"),
        ({"on_start": 5}, r"on_start is 5; it must be a function that can be called as on_start\(ctx\)"),
        ({"on_end": lambda: 1}, r"called as on_end\(ctx\)"),
        ({"on_success": lambda ctx: 1}, r"called as on_success\(ctx, output\)"),
        ({"on_fail": lambda ctx: 1}, r"called as on_fail\(ctx, error\)"),
    ],
)
def test_an_option_that_breaks_a_rule_is_refused_where_it_is_written(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidArgument, match=rule):
        job(**({"name": "work"} | options))(with_model)


def keyword_only(*, ctx: Context) -> None: ...
def anything(*arguments: Any, **options: Any) -> None: ...
def generator(payload: dict[str, Any]) -> Iterator[int]:
    yield 1


async def async_generator(payload: dict[str, Any]) -> AsyncIterator[int]:
    yield 1


class CallableInstance:
    async def __call__(self, payload: dict[str, Any]) -> None: ...


class NeedsArguments:
    def __init__(self, client: Any) -> None: ...
    async def execute(self) -> None: ...


class WithBadHook(WithExecute):
    def on_end(self) -> None: ...


class WithoutHook(WithExecute):
    on_start = None  # type: ignore[assignment]


def test_what_cannot_be_a_handler_is_refused() -> None:
    async def three(a: int, b: int, ctx: Context) -> None: ...

    class NoExecute: ...

    async def unreadable(payload: NoExecute) -> None: ...

    cases: list[tuple[Any, str]] = [
        (three, "a payload and a context, or less"),
        (NoExecute, "a method `execute`"),
        (unreadable, "pydantic cannot read this"),
        (keyword_only, "a payload and a context, or less"),
        (anything, r"must name what it takes.*functools\.wraps"),
        (generator, "must not yield"),
        (async_generator, "must not yield"),
        (functools.partial(echo), "must be a function, or a class"),
        (CallableInstance(), "must be a function, or a class"),
        (print, "must be a function, or a class"),
        (5, "must be a function, or a class"),
        (NeedsArguments, "makes an instance of it, without arguments: .*'client'"),
        (WithBadHook, r"called as on_end\(ctx\)"),
        (WithoutHook, r"on_start is None; .* called as on_start\(ctx\)"),
    ]
    for target, rule in cases:
        with pytest.raises(InvalidArgument, match=rule):
            job("work")(target)


def test_an_id_may_be_part_of_a_payload() -> None:
    async def by_id(payload: dict[str, UUID]) -> None: ...

    read = job("work")(by_id).read('{"id": "0199a5b0-7c1e-7d3a-9a55-3f2f6d1c8e42"}')

    assert read == {"id": UUID("0199a5b0-7c1e-7d3a-9a55-3f2f6d1c8e42")}


def test_an_isolated_class_has_no_hooks_of_its_own_for_they_would_never_meet_its_instance() -> None:
    with pytest.raises(InvalidArgument, match=r"on_start is .* another process than its class.*on_start=…"):
        job("work", isolation="process")(WithExecute)

    handler = job("work", isolation="process", on_start=hook)(WithoutHooks)
    assert handler.bind_hooks().hooks == {"on_start": hook}


def hook(ctx: Context) -> None: ...


class WithoutHooks:
    async def execute(self) -> None: ...


class WithStatic:
    @staticmethod
    async def execute(payload: dict[str, Any]) -> Any:
        return payload


class WithClassMethod:
    @classmethod
    async def execute(cls, payload: dict[str, Any]) -> Any:
        return payload


@pytest.mark.parametrize("target", [WithStatic, WithClassMethod])
async def test_a_method_of_the_class_itself_takes_its_payload_too(target: type) -> None:
    handler = job("work")(target)

    assert handler.takes_payload
    assert await handler.bind().call({"a": 1}, None) == {"a": 1}  # type: ignore[arg-type]


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call


def traced_without_wraps(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(payload: dict[str, Any]) -> Any:
        return function(payload)

    return call


async def echo(payload: dict[str, Any]) -> Any:
    return payload


async def test_an_asynchronous_function_in_a_plain_decorator_is_asynchronous() -> None:
    handler = job("work")(traced(traced(echo)))

    assert handler.is_async
    assert await handler.bind().call({"a": 1}, None) == {"a": 1}  # type: ignore[arg-type]


def test_what_must_be_awaited_and_is_not_is_an_error_that_says_what_to_do() -> None:
    handler = job("work")(traced_without_wraps(echo))

    with pytest.raises(PermanentError, match=r"make the handler `async def`.* functools\.wraps") as error:
        handler.bind().call({"a": 1}, None)  # type: ignore[arg-type]

    assert error.value.code == Code.OUTPUT_INVALID


class Connection: ...


class Connected(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

    to: str
    connection: Connection | None = None


def test_a_payload_of_which_no_schema_can_be_made_has_none_and_is_still_read() -> None:
    async def handler(payload: Connected) -> None: ...

    made = job("work")(handler)

    assert made.payload_schema() is None
    assert made.read('{"to": "ada"}') == Connected(to="ada")


@dataclass
class Unfinished:
    missing: "Missing"  # type: ignore[name-defined]  # noqa: F821


def test_a_payload_whose_type_is_not_complete_is_named_with_its_handler() -> None:
    async def handler(payload: Unfinished) -> None: ...

    with pytest.raises(InvalidArgument, match=r"payload is 'tests\.unit\.test_handler.*handler'; .*not fully defined"):
        job("work")(handler).payload_schema()

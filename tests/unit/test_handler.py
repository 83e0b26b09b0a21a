"""What `@job` makes of a function or class."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypedDict
from uuid import UUID

import pydantic
import pytest

from ostinato import Context, InvalidArgument, SyncContext, job
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
    ],
)
def test_an_option_that_breaks_a_rule_is_refused_where_it_is_written(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidArgument, match=rule):
        job(**({"name": "work"} | options))(with_model)


def keyword_only(*, ctx: Context) -> None: ...


def test_what_cannot_be_a_handler_is_refused() -> None:
    async def three(a: int, b: int, ctx: Context) -> None: ...

    class NoExecute: ...

    async def unreadable(payload: NoExecute) -> None: ...

    cases: list[tuple[Any, str]] = [
        (three, "a payload and a context, or less"),
        (NoExecute, "a method `execute`"),
        (unreadable, "pydantic cannot read this"),
        (keyword_only, "a payload and a context, or less"),
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

    handler = job("work", isolation="process", on_start=in_a_thread)(WithoutHooks)
    assert handler.bind_hooks().hooks == {"on_start": in_a_thread}


class WithoutHooks:
    async def execute(self) -> None: ...

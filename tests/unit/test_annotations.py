"""Annotations are strings in this module: what they say of a payload must hold all the same."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, Optional, Required, TypedDict

import pytest
from pydantic import AfterValidator, BeforeValidator, Field, with_config

from ostinato import Context, InvalidArgument, job
from ostinato.handler import Handler


class Letter(TypedDict):
    to: str
    copies: NotRequired[int]


class Registered(Letter):
    number: NotRequired[Annotated[int, Field(gt=0)]]


class Partial(TypedDict, total=False):
    to: Required[str]
    copies: int


class Outer(TypedDict):
    first: Letter
    rest: list[Partial]


class Tree(TypedDict):
    name: str
    below: NotRequired[list[Tree]]


@with_config({"extra": "forbid"})
class Closed(TypedDict):
    to: str


def reading(annotation: Any) -> Handler:
    async def handler(payload: Any) -> None: ...

    handler.__annotations__["payload"] = annotation
    return job("work")(handler)


@pytest.mark.parametrize(
    ("annotation", "payload"),
    [
        (Letter, '{"to": "ada"}'),
        (Registered, '{"to": "ada"}'),
        (Partial, '{"to": "ada"}'),
        (Outer, '{"first": {"to": "ada"}, "rest": [{"to": "ada"}]}'),
        (Tree, '{"name": "a", "below": [{"name": "b", "below": [{"name": "c"}]}]}'),
        (dict[str, Letter], '{"a": {"to": "ada"}}'),
        (dict[str, "list[Letter]"], '{"a": [{"to": "ada"}]}'),
        (Letter | None, '{"to": "ada"}'),
        (Optional[Letter], '{"to": "ada"}'),  # noqa: UP045  another kind of object than the one before
        (Annotated[Letter, "doc"], '{"to": "ada"}'),
    ],
)
def test_what_a_typed_dict_does_not_require_may_be_missing(annotation: Any, payload: str) -> None:
    assert reading(annotation).read(payload) is not None


@pytest.mark.parametrize(
    ("annotation", "payload", "refused"),
    [
        (Letter, '{"copies": 1}', "to"),
        (Registered, '{"copies": 1}', "to"),
        (Registered, '{"to": "ada", "number": 0}', "number"),
        (Partial, '{"copies": 1}', "to"),
        (Outer, '{"first": {"to": "ada"}, "rest": [{}]}', r"rest\.0\.to"),
        (Tree, '{"name": "a", "below": [{"name": "b", "below": [{}]}]}', r"below\.0\.below\.0\.name"),
        (dict[str, Letter], '{"a": {}}', r"a\.to"),
        (Letter | None, "{}", "to"),
        (Closed, '{"to": "ada", "from": "bob"}', "from"),
    ],
)
def test_what_a_typed_dict_requires_may_not(annotation: Any, payload: str, refused: str) -> None:
    with pytest.raises(ValueError, match=rf"\n{refused}\n"):
        reading(annotation).read(payload)


def test_annotated_says_more_than_the_type() -> None:
    most_one = reading(Annotated[dict[str, int], Field(max_length=1)])
    after = reading(Annotated[dict[str, Any], AfterValidator(lambda read: read | {"validated": True})])
    before = reading(Annotated[Letter, BeforeValidator(lambda given: {"to": given["recipient"]})])

    assert after.read("{}") == {"validated": True}
    assert before.read('{"recipient": "ada"}') == {"to": "ada"}
    with pytest.raises(ValueError, match="at most 1 item"):
        most_one.read('{"a": 1, "b": 2}')


def test_an_annotated_context_is_a_context() -> None:
    async def handler(payload: dict[str, Any], about: Annotated[Context, "the job's"]) -> None: ...

    assert job("work")(handler).context_place == 1


def test_a_name_that_nobody_knows_is_refused_by_its_name() -> None:
    class Local(TypedDict): ...

    class Holding(TypedDict):
        held: Local

    with pytest.raises(InvalidArgument, match=r"annotation is 'Local'; it cannot be resolved in tests\.unit"):
        reading(Holding)

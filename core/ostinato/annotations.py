"""The types that a handler's annotations name, as pydantic reads payloads by them."""

import operator
import sys
from collections.abc import Callable
from functools import reduce
from types import GenericAlias, UnionType
from typing import Any, get_type_hints, is_typeddict

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from typing_extensions import TypedDict

from ostinato.errors import InvalidArgument


def read_hints(annotated: Callable[..., Any]) -> dict[str, Any]:
    """By parameter or field, with all that `Annotated` and `NotRequired` say."""
    try:
        return get_type_hints(annotated, include_extras=True)
    except NameError as error:
        raise InvalidArgument("annotation", error.name, f"it cannot be resolved in {annotated.__module__}") from None


def make_adapter(name: str, annotation: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(_readable(annotation, {}) if sys.version_info < (3, 12) else annotation)
    except PydanticUserError as error:
        reason = str(error).partition("\n")[0]
        raise InvalidArgument(name, annotation, f"pydantic cannot read this as a payload: {reason}") from None


def _readable(annotation: Any, twins: dict[Any, Any]) -> Any:
    """Before Python 3.12 pydantic takes only the TypedDict of typing_extensions, wherever there is one."""
    if is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return twins.get(annotation) or _twin(annotation, twins)
    parts = getattr(annotation, "__args__", ())
    readable = tuple(_readable(part, twins) for part in parts)
    if readable == parts:
        return annotation
    if isinstance(annotation, UnionType):
        return reduce(operator.or_, readable)
    if isinstance(annotation, GenericAlias):
        origin: Any = annotation.__origin__
        return GenericAlias(origin, readable)
    return annotation.copy_with(readable)


def _twin(annotation: Any, twins: dict[Any, Any]) -> Any:
    """The same fields. It is known before they are read, since they may name it."""
    twins[annotation] = twin = TypedDict(annotation.__name__, {})  # type: ignore[operator]
    for name, value in vars(annotation).items():
        if name not in ("__dict__", "__weakref__"):
            setattr(twin, name, value)
    # `__required_keys__` does not know of a NotRequired in an annotation that is a string: the hints say it.
    twin.__annotations__ = {name: _readable(hint, twins) for name, hint in read_hints(annotation).items()}
    return twin

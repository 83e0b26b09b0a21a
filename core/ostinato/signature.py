"""What a handler takes, read once from the function or class under `@job`; what could never work is refused."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Final, get_origin

from ostinato.annotations import make_adapter, read_hints
from ostinato.context import Context
from ostinato.errors import InvalidArgument

TAKEN: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
UNNAMED: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
PLAIN: Final = (dict, dict[str, Any], Any, inspect.Parameter.empty)


def read_signature(name: str, target: Callable[..., Any]) -> dict[str, Any]:
    function = _function(name, target)
    parameters = _parameters(name, function)
    hints = read_hints(function)
    places = [place for place, each in enumerate(parameters) if _is_context(each.name, hints.get(each.name))]
    others = [each for place, each in enumerate(parameters) if place not in places]
    if len(places) > 1 or len(others) > 1 or any(each.kind not in TAKEN for each in parameters):
        raise InvalidArgument(name, target, "the handler must take a payload and a context, or less")
    annotation = hints.get(others[0].name, inspect.Parameter.empty) if others else None
    return {
        "is_class": inspect.isclass(target),
        "is_async": _is_async(function),
        "takes_payload": bool(others),
        "payload": None if not others or annotation in PLAIN else make_adapter(name, annotation),
        "context_place": places[0] if places else None,
    }


def method_of(target: type, name: str) -> Any:
    """As an instance will have it, of which there is none yet."""
    found = inspect.getattr_static(target, name, None)
    if isinstance(found, classmethod) or (callable(found) and hasattr(found, "__get__")):
        return found.__get__(object(), target)
    return found


def yields(function: Any) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _function(name: str, target: Any) -> Callable[..., Any]:
    """The one that is called: it has a name, by which people find it."""
    function: Callable[..., Any] = method_of(target, "execute") if inspect.isclass(target) else target
    if not callable(function) or not hasattr(function, "__qualname__") or inspect.isbuiltin(function):
        raise InvalidArgument(name, target, "the handler must be a function, or a class with a method `execute`")
    if yields(function):
        raise InvalidArgument(name, target, "the handler must not yield: collect the values, and return them")
    if inspect.isclass(target):
        _check_made_of_nothing(name, target)
    return function


def _check_made_of_nothing(name: str, target: type) -> None:
    try:
        inspect.signature(target).bind()
    except ValueError:
        return  # Written in C, it may keep its parameters to itself.
    except TypeError as error:
        rule = f"each attempt makes an instance of it, without arguments: {error}"
        raise InvalidArgument(name, target, rule) from None


def _parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    if any(each.kind in UNNAMED for each in parameters):
        rule = "the handler must name what it takes; a decorator around it must use functools.wraps"
        raise InvalidArgument(name, function, rule)
    return parameters


def _is_async(function: Callable[..., Any]) -> bool:
    """A decorator's plain function hands on what the asynchronous one in it returns: something to be awaited."""
    return inspect.iscoroutinefunction(inspect.unwrap(function, stop=inspect.iscoroutinefunction))


def _is_context(name: str, annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    return name == "ctx" or (inspect.isclass(annotation) and issubclass(annotation, Context))

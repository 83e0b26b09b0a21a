"""What is called around an attempt: functions that `@job` is given, or methods of its class."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ostinato.errors import InvalidArgument
from ostinato.signature import method_of, yields

Hook = Callable[..., Awaitable[None] | None]

# What each is called with.
HOOKS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"on_start": ("ctx",), "on_success": ("ctx", "output"), "on_fail": ("ctx", "error"), "on_end": ("ctx",)}
)


def read_hooks(given: Mapping[str, Hook | None]) -> dict[str, Hook]:
    hooks = {name: hook for name, hook in given.items() if hook is not None}
    for name, hook in hooks.items():
        _check(name, hook)
    return hooks


def check_own_hooks(target: type, *, isolated: bool) -> None:
    own = [name for name in HOOKS if hasattr(target, name)]
    if own and isolated:
        # The instance is in the attempt's process, hooks are called in the worker: they would never meet.
        rule = "the hooks of an isolated job run in another process than its class: give @job a function instead"
        raise InvalidArgument(own[0], target, f"{rule}, {own[0]}=…")
    for name in own:
        _check(name, method_of(target, name))


def _check(name: str, hook: Any) -> None:
    if not _fits(name, hook):
        called = f"{name}({', '.join(HOOKS[name])})"
        raise InvalidArgument(name, hook, f"it must be a function that can be called as {called}")


def _fits(name: str, hook: Any) -> bool:
    try:
        inspect.signature(hook).bind(*HOOKS[name])
    except ValueError:  # Written in C, it may keep its parameters to itself.
        return True
    except TypeError:
        return False
    return not yields(hook)

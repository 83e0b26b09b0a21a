"""The handlers that modules hold, by name and version. A package is looked through with all that is below it."""

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from types import ModuleType

from ostinato.handler import Handler

Handlers = dict[tuple[str, int], Handler]


class NotImportable(Exception):
    """Names the module."""


def find_handlers(modules: Sequence[str]) -> Handlers:
    found = (value for name in modules for module in _tree(name) for value in vars(module).values())
    return {(value.name, value.version): value for value in found if isinstance(value, Handler)}


def _tree(name: str) -> Iterator[ModuleType]:
    module = _import(name)
    yield module
    for below in pkgutil.iter_modules(getattr(module, "__path__", ()), prefix=f"{name}."):
        # Importing a package's __main__ would run a program.
        if not below.name.endswith(".__main__"):
            yield from _tree(below.name)


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except BaseException as error:  # A module may do anything, `sys.exit` too; the worker must hear which it was.
        raise NotImportable(f"the module {name} cannot be imported: {type(error).__name__}: {error}") from error

"""The handlers that a worker serves: found in modules by name, or given. Two for one type and version are refused."""

import importlib
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import reduce
from importlib.metadata import entry_points
from types import MappingProxyType, ModuleType
from typing import Any, Final

from ostinato.errors import InvalidArgument
from ostinato.handler import Handler
from ostinato.postgres import PostgresPool
from ostinato.store import JobType, Limit

ENTRY_POINTS: Final = "ostinato.jobs"

Maker = Callable[[PostgresPool], Iterable[Handler]]  # of handlers that work in the worker's own database
Source = str | Handler | Maker
Jobs = Source | Iterable[Source] | None
Homes = Mapping[Handler | Maker, str | None]  # the module in which each was found, if it was given by a module's name

NOWHERE: Final[Homes] = MappingProxyType({})


class Registry:
    def __init__(self, handlers: Iterable[Handler], makers: Iterable[Maker] = (), homes: Homes = NOWHERE) -> None:
        self._handlers: dict[tuple[str, int], Handler] = {}
        self._makers = tuple(makers)
        self._homes = homes
        for handler in handlers:
            self._add(handler)
        self.served: Final = [handler.served for handler in self]

    @classmethod
    def load(cls, jobs: Jobs) -> "Registry":
        """From modules and handlers; None is what the installed packages offer as entry points."""
        found = dict(_found(jobs))
        handlers = [each for each in found if isinstance(each, Handler)]
        registry = cls(handlers, [each for each in found if not isinstance(each, Handler)], found)
        if not found:
            raise InvalidArgument("jobs", jobs, "it must name a module that holds a handler, made by @job")
        return registry

    def opened(self, pool: PostgresPool) -> "Registry":
        """With those that need a database, once there is one."""
        made = (handler for make in self._makers for handler in make(pool))
        return Registry([*self, *made], homes=self._homes)

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers.values())

    @property
    def isolated(self) -> list[str]:
        """The modules of the handlers that want a process of their own."""
        modules = dict.fromkeys(self._home(handler) for handler in self if handler.isolation)
        if "__main__" in modules:
            rule = "a process of its own cannot import it: put the handler into a module"
            raise InvalidArgument("isolation", "__main__", rule)
        return list(modules)

    def find(self, job_type: str, version: int) -> Handler | None:
        return self._handlers.get((job_type, version))

    def job_types(self, max_attempts: int, timeout: timedelta | None) -> list[JobType]:
        """What the worker says of them in the database."""
        return [
            JobType(
                name=handler.name,
                version=handler.version,
                queue=handler.queue,
                max_attempts=handler.max_attempts or max_attempts,
                timeout=handler.timeout or timeout,
                payload_schema=handler.payload_schema(),
                limit=_limit(handler),
            )
            for handler in self
        ]

    def _home(self, handler: Handler) -> str:
        """A module that a process of its own can import to have it: its function may be from one that has not."""
        for name in (handler.target.__module__, self._homes.get(handler), handler.made_in):
            if name is not None and _holds(name, handler):
                return name
        rule = "a process of its own finds only what a module holds by a name"
        raise InvalidArgument("isolation", handler.where, f"{rule}: put it into one, and name that in jobs")

    def _add(self, handler: Handler) -> None:
        other = self._handlers.setdefault((handler.name, handler.version), handler)
        if other is not handler:
            rule = f"{other.where} and {handler.where} both handle it: rename one, or give it another version"
            raise InvalidArgument("job type", handler.served, rule)


def _limit(handler: Handler) -> Limit | None:
    if handler.max_running is None and handler.rate is None:
        return None
    rate = handler.rate
    return Limit(
        max_running=handler.max_running,
        rate=rate.per_second if rate else None,
        burst=float(rate.count) if rate else None,
    )


def installed() -> list[str]:
    """The modules that installed packages offer, or what is in them: "shop.jobs", "shop.jobs:send_email"."""
    return [
        f"{entry.module}:{entry.attr}" if entry.attr else entry.module for entry in entry_points(group=ENTRY_POINTS)
    ]


def _found(jobs: Jobs) -> Iterator[tuple[Handler | Maker, str | None]]:
    sources = installed() if jobs is None else jobs
    for each in [sources] if isinstance(sources, str) or callable(sources) else sources:
        if not isinstance(each, str):
            yield each, None
        elif ":" in each:
            yield from _in_attribute(each)
        else:
            yield from _in_module(each)


def _in_attribute(source: str) -> Iterator[tuple[Handler, str]]:
    """One handler, or several: the module may hold others, which were not asked for."""
    name, _, attribute = source.partition(":")
    try:
        value: Any = reduce(getattr, attribute.split("."), _import(name))
    except AttributeError as error:
        raise InvalidArgument("jobs", source, str(error)) from None
    handlers = [value] if isinstance(value, Handler) else value
    if not isinstance(handlers, list | tuple) or not all(isinstance(each, Handler) for each in handlers):
        raise InvalidArgument("jobs", source, "it must be a handler, made by @job, or a list of them")
    yield from ((each, name) for each in handlers)


def _in_module(name: str) -> Iterator[tuple[Handler, str]]:
    """Of a package also what is in its modules, however deep."""
    module = _import(name)
    yield from ((value, name) for value in vars(module).values() if isinstance(value, Handler))
    for path in getattr(module, "__path__", ()):
        for found in pkgutil.iter_modules([path], f"{name}."):
            if not found.name.endswith(".__main__"):
                yield from _in_module(found.name)


def _holds(name: str, handler: Handler) -> bool:
    """As the server looks for it: by its type and version."""
    held = vars(sys.modules[name]).values() if name in sys.modules else ()
    return any(isinstance(each, Handler) and each.served == handler.served for each in held)


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise InvalidArgument("jobs", name, _broken(error)) from error
        rule = f"there is no module {error.name!r}: name it as Python imports it, from the folder that holds it"
        raise InvalidArgument("jobs", name, rule) from None
    except Exception as error:  # whatever a module of theirs may raise
        raise InvalidArgument("jobs", name, _broken(error)) from error


def _broken(error: Exception) -> str:
    """Where: the frames of the import machinery are of no use to anybody."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = "" if isinstance(error, SyntaxError) else f" ({last.filename}, line {last.lineno})"
    return f"it cannot be imported: {type(error).__name__}: {error}{where}"

"""A worker's shift: from what the command was told to the end of the process."""

import asyncio
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import click

from ostinato.dsn import Dsn
from ostinato.errors import InvalidArgument
from ostinato.handler import Handler
from ostinato.postgres import PostgresPool
from ostinato.settings import Settings
from ostinato_cli.document import show_json
from ostinato_cli.ending import end_soon
from ostinato_cli.exits import DONE, NOT_DONE
from ostinato_worker import Worker, memory
from ostinato_worker.builtin import BuiltinSettings, builtin_handlers
from ostinato_worker.logs import Format, log_to_stderr
from ostinato_worker.registry import Source, installed
from ostinato_worker.signals import Signals

MARGIN: Final = 0.2  # seconds
STATE: Final = "name it as MODULE:NAME, a function without arguments that returns an async context manager"


@dataclass(frozen=True, kw_only=True)
class Orders:
    jobs: list[str]
    builtin: bool
    state: str | None
    drain: bool
    output: str
    log_format: Format
    log_level: str
    options: dict[str, Any]  # of the Worker


def work(settings: Settings, dsn: Dsn, orders: Orders) -> int:
    _find_modules_here()
    begun: list[Worker] = []
    log_to_stderr(orders.log_format, orders.log_level, lambda: begun[0].id if begun else None)
    state = _find_state(orders.state) if orders.state else None
    worker = Worker(dsn, _sources(orders), state=state, settings=settings, **orders.options)
    begun.append(worker)
    memory.settle()
    with asyncio.Runner(loop_factory=_fast_loops()) as runner:
        runner.run(_work(worker, orders))
    return DONE


async def _work(worker: Worker, orders: Orders) -> None:
    code = NOT_DONE
    parting = asyncio.create_task(_count_down_to_the_grace(worker), name="ostinato-parting")
    try:
        if orders.drain:
            with Signals(worker.stop):
                _show(await worker.drain(), orders.output)
        else:
            await worker.run()
        code = DONE
    finally:
        parting.cancel()
        end_soon(code)


async def _count_down_to_the_grace(worker: Worker) -> None:
    """All is recorded by then: what the application or a handler does not close must not take more than is left."""
    while True:  # a second signal leaves less
        end_soon(DONE, within=await worker.parted() - MARGIN)


def _show(counts: dict[str, int], output: str) -> None:
    if output == "json":
        show_json(counts)
    else:
        click.echo("\n".join(f"{name} {count}" for name, count in sorted(counts.items())) or "nothing was due")


def _sources(orders: Orders) -> list[Source]:
    sources: list[Source] = [*(orders.jobs or installed())]
    if orders.builtin:
        sources.append(_builtin)
    if not sources:
        raise click.UsageError(
            "no jobs: give --jobs with a module that holds handlers, such as --jobs shop.jobs\n"
            "(or --builtin; no installed package offers any as entry points of the group ostinato.jobs)"
        )
    return sources


def _builtin(pool: PostgresPool) -> list[Handler]:
    return builtin_handlers(BuiltinSettings.from_env(), pool)


def _find_modules_here() -> None:
    """As `python -m` does: an installed script's own folder stands first otherwise."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)


def _find_state(text: str) -> Callable[[], Any]:
    module, _, name = text.partition(":")
    if not module or not name.isidentifier():
        raise InvalidArgument("state", text, STATE)
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidArgument("state", text, f"{error}; {STATE}") from None
    if not callable(found):
        raise InvalidArgument("state", text, STATE)
    state: Callable[[], Any] = found
    return state


def _fast_loops() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ModuleNotFoundError:  # there is none for Windows
        return None
    return uvloop.new_event_loop

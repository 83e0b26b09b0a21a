"""A peer's program: how it is started and what it says of itself. The protocol is in ../README.md."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from bench.peers import install
from bench.peers.cache import environment

CHECKOUT: Final = Path(__file__).parents[2]
OURS, LIMIT = "ours", "limit"
PEERS: Final = (
    OURS,
    LIMIT,
    "graphile_worker",
    "river",
    "pg_boss",
    "awa",
    "awa_canonical",
    "pgqueuer",
    "chancy",
    "procrastinate",
)
CALL_SECONDS = 170
SHOWN = 2000


class AdapterFailed(Exception):
    """A peer's program ended badly; the message is the end of what it wrote."""


def command(name: str, cache: Path) -> list[str]:
    """Installs what it needs, if it has not been."""
    if name == OURS:
        return [sys.executable, "-m", f"bench.peers.adapters.{name}"]
    if (install.ADAPTERS / f"{name}.py").exists():
        return [str(install.python(cache)), "-m", f"bench.peers.adapters.{name}"]
    if (script := install.ADAPTERS / f"{name}.mjs").exists():
        return [str(install.node(cache)), str(script)]
    return [str(install.river(cache))]


@dataclass
class Adapter:
    name: str
    command: list[str]
    cache: Path
    dsn: str = ""

    @cached_property
    def meta(self) -> dict[str, Any]:
        return dict(json.loads(self.call("meta")))

    @property
    def fast(self) -> bool:
        return bool(self.meta.get("fast"))

    def enqueue(self, jobs: int, chunk: int, handler: str = "noop") -> float:
        """The seconds that it took."""
        said = self.call("enqueue", jobs, chunk, handler=handler)
        return float(json.loads(said.splitlines()[-1])["seconds"])

    def call(self, *words: object, handler: str = "noop") -> str:
        done = subprocess.run(
            [*self.command, *map(str, words)],
            cwd=CHECKOUT,
            env=self.environment(handler),
            capture_output=True,
            text=True,
            timeout=CALL_SECONDS,
        )
        if done.returncode != 0:
            raise AdapterFailed(f"{self.name} {words[0]}: {done.stderr[-SHOWN:]}")
        return done.stdout

    def environment(self, handler: str = "noop") -> dict[str, str]:
        told = {"BENCH_DSN": self.dsn, "BENCH_CACHE": str(self.cache), "BENCH_HANDLER": handler}
        return environment(**told, PYTHONUNBUFFERED="1")

"""python -m bench.peers [--peers ours,river] [--scenarios S1L,S2] [--quick]: measure, print a table, write JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers.adapter import LIMIT, PEERS, Adapter, command
from bench.peers.cache import cache_folder
from bench.peers.goals import judge
from bench.peers.install import NotInstalled
from bench.peers.postgres import MORE, Postgres, Starter, servers
from bench.peers.report import summary, whole
from bench.peers.scenarios import SCENARIOS
from bench.peers.sizes import Sizes
from bench.peers.stand import Stand
from bench.peers.watch import Neighbours, Row, say
from bench.server import SETTINGS

RESULTS = Path(__file__).parents[1] / "results"
SHOWN = 300
# It needs two cores, on purpose: what slows one of them shows.
CALIBRATION = {"batch": 1, "conns": 4, "finish": "delete"}
CALIBRATION_SECONDS = 5


def main() -> int:
    asked = _arguments()
    sizes = Sizes().tenth() if asked.quick else Sizes()
    bench = Bench(sizes, asked.scenarios, asked.quick)
    adapters = bench.install([LIMIT, *asked.peers])
    with servers(asked.dsn, asked.bin_dir, cache_folder()) as starter:
        for name in asked.peers:
            bench.measure(name, adapters, starter)
    print(summary(bench.result))
    return 0 if bench.flawless else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description="Side by side. See bench/README.md.")
    parser.add_argument("--peers", type=_some_of(PEERS), default=list(PEERS), help=f"of {','.join(PEERS)}")
    parser.add_argument(
        "--scenarios", type=_some_of(list(SCENARIOS)), default=list(SCENARIOS), help=f"of {','.join(SCENARIOS)}"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the work: for a look, not for figures")
    server = parser.add_mutually_exclusive_group()
    server.add_argument("--dsn", help="a server of your own, on which two databases are made; else an embedded one")
    server.add_argument("--bin-dir", type=Path, help="the embedded server's binaries; else those of the wheel")
    return parser.parse_args()


def _some_of(known: Sequence[str]) -> Any:
    def read(text: str) -> list[str]:
        if unknown := set(text.split(",")) - set(known):
            raise argparse.ArgumentTypeError(f"no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        return text.split(",")

    return read


class Bench:
    """What was found so far; written down after each scenario, as a run may be ended early."""

    def __init__(self, sizes: Sizes, scenarios: list[str], quick: bool) -> None:
        self._began = time.monotonic()
        self._sizes, self._scenarios, self._neighbours = sizes, scenarios, Neighbours(sizes)
        self._path = RESULTS / time.strftime("peers-%Y-%m-%dT%H%M%S.json")
        self.result: Row = {
            "when": time.strftime("%Y-%m-%d %H:%M"),
            "machine": f"{os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}",
            "server": SETTINGS | MORE,
            "sizes": vars(sizes),
            "quick": quick,
            "peers": {},
        }

    def install(self, names: list[str]) -> dict[str, Adapter]:
        """All before the first is measured, whom installing would disturb."""
        cache, adapters = cache_folder(), {}
        for name in dict.fromkeys(names):
            try:
                adapters[name] = Adapter(name, command(name, cache), cache)
            except NotInstalled as error:
                self._fail(name, error)
        return adapters

    def measure(self, name: str, adapters: dict[str, Adapter], starter: Starter) -> None:
        if name not in adapters:
            return
        try:
            with starter() as postgres:
                self.result["postgres"] = postgres.outside("show server_version")
                row = self.result["peers"][name] = {"calibration": self._calibrate(adapters[LIMIT], postgres)}
                self._all_scenarios(self._stand(adapters[name], postgres), row)
        # One broken peer must not cost the others.
        except Exception as error:
            self._fail(name, error)

    @property
    def flawless(self) -> bool:
        """No goal was missed, and nobody failed against whom one might have been."""
        peers = self.result["peers"]
        failed = any("error" in row or "error" in (row[key] or {}) for row in peers.values() for key in row)
        return not failed and all(verdict.reached is not False for verdict in judge(peers))

    def _all_scenarios(self, stand: Stand, row: Row) -> None:
        row["meta"] = {key: stand.adapter.meta[key] for key in ("peer", "versions", "note", "atomic_txn")}
        stand.make_template()
        for scenario in self._scenarios:
            say(stand.adapter.name, scenario)
            try:
                row[scenario] = SCENARIOS[scenario](stand)
            # Nor one broken scenario the others.
            except Exception as error:
                say("  FAILED", stand.adapter.name, scenario, str(error)[-SHOWN:])
                row[scenario] = {"error": str(error)[-SHOWN:]}
            self._write()

    def _calibrate(self, limit: Adapter, postgres: Postgres) -> Row:
        """A fixed run before each peer: if it drifts, so did the machine."""
        stand = self._stand(limit, postgres)
        stand.make_template()
        row = stand.loaded("noop", CALIBRATION, 1, self._sizes.throughput, CALIBRATION_SECONDS)
        say("calibration", f"{row['rate']:,.0f}/s")
        return {key: row[key] for key in ("rate", "foreign_cores")}

    def _stand(self, adapter: Adapter, postgres: Postgres) -> Stand:
        adapter.dsn = postgres.dsn
        return Stand(adapter, postgres, self._neighbours, self._sizes)

    def _fail(self, name: str, error: Exception) -> None:
        say("FAILED", name, str(error)[-SHOWN:])
        self.result["peers"].setdefault(name, {})["error"] = str(error)[-SHOWN:]

    def _write(self) -> None:
        RESULTS.mkdir(exist_ok=True)
        self.result["minutes"] = round((time.monotonic() - self._began) / 60, 1)
        self.result["discarded"] = self._neighbours.discarded
        goals = [{"goal": each.goal, "ratio": each.ratio, "verdict": str(each)} for each in judge(self.result["peers"])]
        self._path.write_text(json.dumps(self.result | {"goals": goals}, indent=1, default=str))
        self._path.with_suffix(".md").write_text(whole(self.result))


if __name__ == "__main__":
    sys.exit(main())

"""python -m bench [--quick] [--dsn DSN] [scenario ...]: measure, print a table, write JSON."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from bench.scenarios import SCENARIOS, Bench, Figure, Sizes
from bench.server import SETTINGS
from ostinato.embedded import EmbeddedPostgres

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Speed as ratios. See bench/README.md.")
    parser.add_argument(
        "scenarios", nargs="*", metavar="scenario", help=f"which of {', '.join(SCENARIOS)}; all if none"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the work: for a look, not for figures")
    parser.add_argument("--dsn", help="a database of your own that may be overwritten; else an embedded server")
    asked = parser.parse_args()
    if unknown := set(asked.scenarios) - set(SCENARIOS):
        parser.error(f"no scenario {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    sizes = Sizes().tenth() if asked.quick else Sizes()
    with server(asked.dsn) as dsn:
        figures = asyncio.run(measure(Bench(dsn, sizes), asked.scenarios or list(SCENARIOS)))
    write(figures, sizes)
    return 0 if all(figure.reached for figure in figures) else 1


@contextlib.contextmanager
def server(dsn: str | None) -> Iterator[str]:
    if dsn:
        yield dsn
        return
    with tempfile.TemporaryDirectory(prefix="ostinato-bench-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        with EmbeddedPostgres(Path(folder, "data"), settings=SETTINGS) as embedded:
            yield embedded.dsn


async def measure(bench: Bench, scenarios: list[str]) -> list[Figure]:
    print(f"{'':28}{'jobs/s':>10}{'against':>10}{'ratio':>8}{'goal':>7}")
    # What has been imported stays, for both sides: the collector need not look at it again with every batch.
    gc.collect()
    gc.freeze()
    figures = []
    for name in scenarios:
        print(f"… {name}", end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)
        figure = await getattr(bench, name)()
        print(line(figure), flush=True)
        figures.append(figure)
    return figures


def line(figure: Figure) -> str:
    measured, against = statistics.median(figure.measured), statistics.median(figure.against)
    verdict = "" if figure.reached else "  missed"
    return f"{figure.name:28}{measured:>10,.0f}{against:>10,.0f}{figure.ratio:>8.2f}{figure.goal:>7.2f}{verdict}"


def write(figures: list[Figure], sizes: Sizes) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / time.strftime("%Y-%m-%dT%H%M%S.json")
    report = {
        "machine": f"{os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}",
        "server": SETTINGS,
        "sizes": asdict(sizes),
        "figures": [asdict(figure) | {"ratio": figure.ratio, "reached": figure.reached} for figure in figures],
    }
    path.write_text(json.dumps(report, indent=1))
    print(f"\nwritten to {path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

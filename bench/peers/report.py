"""The results as Markdown. Also: python -m bench.peers.report bench/results/peers-<when>.json"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.peers.goals import Figure, Peers, Row, Verdict, doubt, judge

NONE = "n/a"


def summary(result: Row) -> str:
    """One table, and what the goals say to it."""
    return f"{rates(result['peers'])}\n\n{goals(result['peers'])}\n"


def whole(result: Row) -> str:
    peers = measured(result["peers"])
    parts = [
        f"# Job queues on Postgres, side by side ({result['when']})",
        f"{result['machine']}; Postgres {result['postgres']}; "
        + ", ".join(f"{name}={value}" for name, value in result["server"].items())
        + f". {result['minutes']} minutes; {result['discarded']} runs repeated because of neighbours."
        + (" A tenth of the work: no figures to quote." if result["quick"] else ""),
        "Calibration, a fixed run of bare SQL before each peer, jobs/s: "
        + ", ".join(f"{name} {number(row['calibration']['rate'])}" for name, row in peers.items()),
        rates(result["peers"]),
        "## Goals",
        goals(result["peers"]),
        "## S7: each round while another session's snapshot pins the horizon",
        table(["peer", "jobs/s"], [[name, cell(row, "S7", _rounds)] for name, row in peers.items()]),
        "## Cost: CPU seconds per 1,000 jobs, WAL bytes per job",
        table(list(COSTS), _rows(peers, COSTS)),
        "## Settings kept",
        table(["peer", "throughput", "latency", "transaction", "note"], [_kept(*each) for each in peers.items()]),
        "## Settings tried",
        table(["peer", "settings", "jobs/s", "from GO"], list(_tried(peers))),
    ]
    return "\n\n".join(parts) + "\n"


def rates(peers: Peers) -> str:
    failed = [[name, f"failed: {' '.join(row['error'].split())[:80]}"] for name, row in peers.items() if "error" in row]
    width = len(RATES) - 2
    return table(list(RATES), _rows(measured(peers), RATES) + [each + [""] * width for each in failed])


def goals(peers: Peers) -> str:
    return table(["goal", "ours", "against", "ratio", "wanted", ""], [_judged(verdict) for verdict in judge(peers)])


def measured(peers: Peers) -> Peers:
    return {name: row for name, row in peers.items() if "error" not in row}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown that can be read as it is: columns are of one width."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    padded = [" | ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) for line in lines]
    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join([f"| {padded[0]} |", f"|{rule}|", *(f"| {line} |" for line in padded[1:])])


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def cell(row: Row, scenario: str, shown: Callable[[Row], str]) -> str:
    found = row.get(scenario)
    if found is None:
        return NONE
    return "failed" if "error" in found else shown(found)


def rate(row: Row) -> str:
    low, high = min(row["all_rates"]), max(row["all_rates"])
    spread = f" ({number(low)} to {number(high)})" if low != high else ""
    return f"{number(row['rate'])}{spread} {doubt(row)}".strip()


def _rows(peers: Peers, columns: dict[str, Callable[[str, Row], str]]) -> list[list[str]]:
    return [[shown(name, row) for shown in columns.values()] for name, row in peers.items()]


def _of(scenario: str, shown: Callable[[Row], str]) -> Callable[[str, Row], str]:
    return lambda _, row: cell(row, scenario, shown)


def _peer(_: str, row: Row) -> str:
    meta = row["meta"]
    return f"{meta['peer']} {meta['versions'].get(meta['peer'], '')}".strip()


def _percentiles(prefix: str, *percents: int) -> Callable[[Row], str]:
    return lambda row: " / ".join(f"{row[f'{prefix}p{each}']:.2f}" for each in percents) + f" {doubt(row)}".rstrip()


def _bulk(row: Row) -> str:
    return rate(row["bulk"]) if "bulk" in row else NONE


def _against_alone(_: str, row: Row) -> str:
    alone = next((each["rate"] for each in (row.get("S1L"), row.get("S1")) if each and "rate" in each), None)
    return NONE if alone is None else cell(row, "S5", lambda deep: f"{deep['rate'] / alone:.2f}")


def _business(row: Row) -> str:
    return f"{rate(row)} {'atomic' if row['atomic'] else 'not atomic'}"


def _pinned(row: Row) -> str:
    return f"{number(row['rates'][-1])} ({row['ratio']:.2f}) {doubt(row)}".strip()


def _rounds(row: Row) -> str:
    return f"{' → '.join(map(number, row['rates']))} ({row['ratio']:.2f}) {doubt(row)}".strip()


def _idle(row: Row) -> str:
    return f"{row['cores'] * 100:.2f} %, {row['queries_per_second']:.2f}/s"


def _default(_: str, row: Row) -> str:
    return next((number(each["rate"]) for each in _trials(row) if each["conf"].get("default")), NONE)


RATES: dict[str, Callable[[str, Row], str]] = {
    "peer": _peer,
    "S1 jobs/s": _of("S1", rate),
    "S1 from GO": _of("S1", lambda row: number(row["rate_from_go"])),
    "S1L jobs/s": _of("S1L", rate),
    "default": _default,
    "S2 jobs/s": _of("S2", rate),
    "S3 commit→start p50/p95/p99 ms": _of("S3", _percentiles("", 50, 95, 99)),
    "call→start p50/p95": _of("S3", _percentiles("from_call_", 50, 95)),
    "S4 single/s": _of("S4", lambda row: rate(row["single"])),
    "S4 bulk/s": _of("S4", _bulk),
    "S5 jobs/s": _of("S5", rate),
    "S5/S1(L)": _against_alone,
    "S6 jobs/s": _of("S6", _business),
    "S6B jobs/s": _of("S6B", rate),
    "S7 last (last/first)": _of("S7", _pinned),
    "idle": _of("idle", _idle),
}


def _cost(key: str) -> Callable[[Row], str]:
    return lambda row: number(row[key])


COSTS: dict[str, Callable[[str, Row], str]] = {
    "peer": _peer,
    "S1 worker CPU": _of("S1", _cost("worker_cpu_s_per_1k")),
    "S1 Postgres CPU": _of("S1", _cost("pg_cpu_s_per_1k")),
    "S1 WAL": _of("S1", _cost("wal_bytes_per_job")),
    "S6 worker CPU": _of("S6", _cost("worker_cpu_s_per_1k")),
    "S6 Postgres CPU": _of("S6", _cost("pg_cpu_s_per_1k")),
    "S6 WAL": _of("S6", _cost("wal_bytes_per_job")),
    "S4 single WAL": _of("S4", lambda row: number(row["single"]["wal_bytes_per_job"])),
}


def _judged(verdict: Verdict) -> list[str]:
    ratio = NONE if verdict.ratio is None else f"{verdict.ratio:.3g}"
    return [verdict.goal, _shown(verdict.measured), _shown(verdict.against), ratio, verdict.wanted, str(verdict)]


def _shown(figure: Figure | None) -> str:
    return f"{number(figure.value)} ({figure.of})" if figure else NONE


def _kept(name: str, row: Row) -> list[str]:
    throughput = next((scenario for scenario in ("S1", "S1L", "S2") if scenario in row), "S1")
    return [name, *(cell(row, each, _settings) for each in (throughput, "S3", "S6")), row["meta"]["note"]]


def _tried(peers: Peers) -> Iterable[list[str]]:
    for name, row in peers.items():
        for each in _trials(row):
            yield [name, _settings(each), number(each["rate"]), number(each["rate_from_go"])]


def _trials(row: Row) -> list[Row]:
    rows = [row.get(scenario) or {} for scenario in ("S1", "S1L", "S2")]
    return next((list(each["tried"]) for each in rows if each.get("tried")), [])


def _settings(row: Row) -> str:
    return " ".join(f"{name}={value}" for name, value in row["conf"].items())


if __name__ == "__main__":
    saved: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    print(whole(saved))

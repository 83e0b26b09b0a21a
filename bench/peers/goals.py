"""What Ostinato wants to reach beside its peers, and whether it did. Arithmetic on a run's results, no I/O.

All figures are of one run on one server. The bare-SQL limit is no peer: it is no queue.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bench.peers.adapter import LIMIT, OURS
from bench.peers.watch import NOISE

Peers: TypeAlias = Mapping[str, Mapping[str, Any]]  # name to scenario to row
Row: TypeAlias = Mapping[str, Any]
SIGNS: Final = {"≥": operator.ge, "≤": operator.le, "<": operator.lt}


@dataclass(frozen=True)
class Figure:
    value: float
    of: str
    doubt: str = ""


Lookup: TypeAlias = Callable[[Peers], Figure | None]


@dataclass(frozen=True)
class Goal:
    """`measured`, over `against` if there is one, should be `sign` `bound`."""

    name: str
    sign: str
    bound: float
    measured: Lookup
    against: Lookup | None = None


@dataclass(frozen=True)
class Verdict:
    goal: str
    wanted: str
    measured: Figure | None
    against: Figure | None
    ratio: float | None
    reached: bool | None  # None: something was not measured

    def __str__(self) -> str:
        if self.reached is None:
            return "not measured"
        doubts = sorted({figure.doubt for figure in (self.measured, self.against) if figure and figure.doubt})
        return " ".join(["reached" if self.reached else "missed", *doubts])


def judge(peers: Peers) -> list[Verdict]:
    return [_verdict(goal, peers) for goal in GOALS]


def doubt(row: Row) -> str:
    """Why a row is not to be quoted, if there is a reason."""
    if row.get("timed_out"):
        return "CUT"
    if row.get("lost"):
        return "LOST"
    return "NOISY" if row.get("worst_foreign_cores", row.get("foreign_cores", 0)) >= NOISE else ""


def _verdict(goal: Goal, peers: Peers) -> Verdict:
    measured = goal.measured(peers)
    against = goal.against(peers) if goal.against else None
    ratio = None
    if measured and against and against.value:
        ratio = measured.value / against.value
    elif measured and not goal.against:
        ratio = measured.value
    reached = None if ratio is None else bool(SIGNS[goal.sign](ratio, goal.bound))
    return Verdict(goal.name, f"{goal.sign} {goal.bound:g}", measured, against, ratio, reached)


def figure(peers: Peers, name: str, scenario: str, *path: str) -> Figure | None:
    """A number inside a peer's row; None if it was not measured or failed."""
    row = peers.get(name, {}).get(scenario)
    value: Any = row
    if not isinstance(row, Mapping):
        return None
    for key in path:
        # The doubts about a number are those of the row that it stands in.
        row, value = value, value.get(key)
        if value is None:
            return None
    return Figure(float(value), name, doubt(row))


def ours(scenario: str, *path: str) -> Lookup:
    return lambda peers: figure(peers, OURS, scenario, *path)


def of(name: str, scenario: str, *path: str) -> Lookup:
    return lambda peers: figure(peers, name, scenario, *path)


def best(choose: Callable[..., Figure], scenario: str, *path: str) -> Lookup:
    def lookup(peers: Peers) -> Figure | None:
        found = [figure(peers, name, scenario, *path) for name in peers if name not in (OURS, LIMIT)]
        return choose((each for each in found if each), key=lambda each: each.value, default=None)

    return lookup


def last_pinned(peers: Peers) -> Figure | None:
    row = peers.get(OURS, {}).get("S7")
    return Figure(row["rates"][-1], OURS, doubt(row)) if row and "rates" in row else None


def atomic_rate(peers: Peers) -> Figure | None:
    row = peers.get(OURS, {}).get("S6")
    return figure(peers, OURS, "S6", "rate") if row and row.get("atomic") else None


def default_rate(peers: Peers) -> Figure | None:
    return next((_trial(row) for row in _tried(peers) if row["conf"].get("default")), None)


def tuned_rate(peers: Peers) -> Figure | None:
    return max(map(_trial, _tried(peers)), key=lambda each: each.value, default=None)


def _trial(row: Row) -> Figure:
    return Figure(row["rate_from_go"], OURS, doubt(row))


def _tried(peers: Peers) -> list[Row]:
    rows = [peers.get(OURS, {}).get(scenario) or {} for scenario in ("S1L", "S1", "S2")]
    return next((list(row["tried"]) for row in rows if row.get("tried")), [])


GOALS: Final = (
    Goal("S1L, one process, over the best peer", "≥", 1.25, ours("S1L", "rate"), best(max, "S1L", "rate")),
    Goal("S2, two processes, over the best peer", "≥", 1.25, ours("S2", "rate"), best(max, "S2", "rate")),
    Goal("S3 p50 in ms, over the best peer", "≤", 1.0, ours("S3", "p50"), best(min, "S3", "p50")),
    Goal("S3 p99 in ms, over the best peer", "≤", 1.0, ours("S3", "p99"), best(min, "S3", "p99")),
    Goal(
        "S4 single enqueue, over the best peer",
        "≥",
        1.25,
        ours("S4", "single", "rate"),
        best(max, "S4", "single", "rate"),
    ),
    Goal("S4 bulk enqueue, over the best peer", "≥", 1.25, ours("S4", "bulk", "rate"), best(max, "S4", "bulk", "rate")),
    Goal("S5 with a backlog, over our S1L", "≥", 0.95, ours("S5", "rate"), ours("S1L", "rate")),
    Goal("S6 atomic, over graphile-worker", "≥", 1.2, atomic_rate, of("graphile_worker", "S6", "rate")),
    Goal("S7 horizon pinned, last round over first", "≥", 0.95, ours("S7", "ratio")),
    Goal("S7 last round, over our S1L", "≥", 0.95, last_pinned, ours("S1L", "rate")),
    Goal("idle worker, cores", "<", 0.005, ours("idle", "cores")),
    Goal("idle worker, queries a second", "<", 1.0, ours("idle", "queries_per_second")),
    Goal("default settings, over the best tried", "≥", 0.8, default_rate, tuned_rate),
)

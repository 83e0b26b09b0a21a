"""The states of a job and the only moves between them.

A move's name is also its statement in `store/sql/`, its function in the store, its log event and its metric label.
The database holds the same rules by itself (`migrations/0001_jobs.sql`); a test compares the two.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class State(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    DEAD_LETTERED = "dead_lettered"


WAITING: Final = frozenset({State.PENDING, State.RETRYING})
LIVE: Final = WAITING | {State.RUNNING}
FINISHED: Final = frozenset({State.COMPLETED, State.CANCELLED})

ROOMS: Final = {
    "jobs": LIVE,
    "job_history": FINISHED,
    "dead_letters": frozenset({State.DEAD_LETTERED}),
}


@dataclass(frozen=True, slots=True)
class Move:
    name: str
    sources: frozenset[State]
    target: State
    why: str


def _move(name: str, sources: set[State] | frozenset[State], target: State, why: str) -> Move:
    return Move(name, frozenset(sources), target, why)


MOVES: Final = (
    _move("claim", WAITING, State.RUNNING, "a worker takes it; the attempt counts from here"),
    _move("complete", {State.RUNNING}, State.COMPLETED, "the handler returned"),
    _move("retry", {State.RUNNING}, State.RETRYING, "the attempt failed and another one is due later"),
    _move("snooze", {State.RUNNING}, State.PENDING, "the handler asked to be called later; no attempt is spent"),
    _move("release", {State.RUNNING}, State.PENDING, "the worker gives it back unfinished; no attempt is spent"),
    _move("recover", {State.RUNNING}, State.PENDING, "its worker died; the crash counts as an attempt"),
    _move("dead_letter", LIVE, State.DEAD_LETTERED, "it will not be tried again until a person says so"),
    _move("cancel", WAITING, State.CANCELLED, "a person called it off before it ran"),
    _move("stop", {State.RUNNING}, State.CANCELLED, "the handler stopped, as a person had asked"),
    _move("hasten", WAITING, State.PENDING, "a person wants it now instead of later"),
    _move("redrive", {State.DEAD_LETTERED}, State.PENDING, "a person wants it tried again"),
)

BY_NAME: Final = {move.name: move for move in MOVES}


def allowed(source: State, target: State) -> bool:
    return any(source in move.sources and move.target is target for move in MOVES)

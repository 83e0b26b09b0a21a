"""Where a worker starts looking: one low-water mark per queue, priority and limited type. No I/O.

While an old transaction pins the horizon, the index entries of finished jobs cannot be removed, and a claim would walk
over all of them each time. So a claim starts at the `run_at` and id that the last one reached. What may lie below a
mark (late commits, released jobs, jobs that another claim had locked) is found when the mark is given up: on a
notification, and about once a second.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

Mark = tuple[datetime, UUID]
EVERYTHING: Final[Mark] = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))
SECONDS: Final = 1.0
# A look below the marks may take at most one part in fifty of a worker's time, however much lies there.
SHARE: Final = 50


@dataclass(slots=True)
class Lane:
    queue: str
    priority: int
    solo: str | None = None  # a limited type that has this lane for itself
    mark: Mark = EVERYTHING


@dataclass
class Lanes:
    """The lanes of one worker, highest priority first; queues of one priority take turns."""

    namespace: str
    queues: Sequence[str]
    limited: Collection[str] = ()
    clock: Callable[[], float] = time.monotonic
    _lanes: dict[tuple[str, int, str | None], Lane] = field(default_factory=dict)
    _valid_until: float = 0.0
    _turn: int = 0

    @property
    def stale(self) -> bool:
        """Whether it is time to look for lanes, and below the marks, again."""
        return self.clock() >= self._valid_until

    def found(self, lines: Iterable[tuple[str, int]]) -> None:
        """These (queue, priority) have waiting jobs."""
        self._lanes.clear()
        for queue, priority in lines:
            self._add(queue, priority)

    def looked(self, seconds: float) -> None:
        """Finding the lanes, and the claim that began at their lowest, took so long."""
        self._valid_until = self.clock() + max(SECONDS, SHARE * seconds)

    def forget(self) -> None:
        """Look for lanes, and below the marks, with the next claim."""
        self._valid_until = 0.0

    def lines(self) -> list[tuple[str, int]]:
        """The (queue, priority) pairs that are known to have waiting jobs."""
        return list(dict.fromkeys((lane.queue, lane.priority) for lane in self._lanes.values()))

    def notified(self, queue: str, priority: int) -> None:
        """There is, or may be, something new in this line: look at all of it."""
        if queue in self.queues:
            self._add(queue, priority)

    def in_order(self) -> list[Lane]:
        """The lanes for the next claim."""
        self._turn += 1
        places = {queue: (place + self._turn) % len(self.queues) for place, queue in enumerate(self.queues)}
        return sorted(self._lanes.values(), key=lambda lane: (-lane.priority, places[lane.queue]))

    def reached(self, latest: Mapping[tuple[str, int, str], Mark]) -> None:
        """A claim took jobs of (queue, priority, type), up to that one."""
        for (queue, priority, job_type), mark in latest.items():
            lane = self._lanes.get((queue, priority, job_type if job_type in self.limited else None))
            # Gone if another claim of this worker has looked for the lanes meanwhile, and seen this one empty.
            if lane is not None:
                lane.mark = max(lane.mark, mark)

    def _add(self, queue: str, priority: int) -> None:
        for solo in (None, *self.limited):
            self._lanes[queue, priority, solo] = Lane(queue, priority, solo)

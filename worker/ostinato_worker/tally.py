"""What a worker has done, in plain numbers: cheap enough to be kept of every job. No I/O; `metrics` shows them.

Jobs are counted in batches where they are claimed and recorded anyway. What is left for each job is one look at the
clock and one place in a list.
"""

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import Final

from ostinato.failures import Code
from ostinato.store import Claimed

# Up to the timeouts that people give, and down to what a handler that does nothing takes.
ATTEMPT_BOUNDS: Final = (
    0.001,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    600.0,
    3600.0,
)
LATENCY_BOUNDS: Final = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    1800.0,
    7200.0,
)
MOST_CODES: Final = 50  # of handlers' own; whoever writes an id into a code must not cost a time series for each
OTHER: Final = "OTHER"
TYPE: Final = attrgetter("job_type")


class Histogram:
    """`buckets` are not cumulative; the last one is for what is beyond all bounds."""

    __slots__ = ("bounds", "buckets", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.buckets[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Tally:
    """`latency`: from when jobs were due until their handlers began. `attempts`: how long they took. Both by type."""

    def __init__(self) -> None:
        self.latency: defaultdict[str, Histogram] = defaultdict(partial(Histogram, LATENCY_BOUNDS))
        self.attempts: defaultdict[str, Histogram] = defaultdict(partial(Histogram, ATTEMPT_BOUNDS))
        self.claims: Counter[str] = Counter()
        self.completions: Counter[str] = Counter()
        self.others: Counter[tuple[str, str, str]] = Counter()  # type, outcome, code
        self.failures: Counter[str] = Counter()  # of our own loops, which then begin again
        self.renewals = 0
        self.late_renewals = 0  # tries that failed
        self.leases_lost = 0
        self._ahead = 0.0  # how far the database's clock is ahead of ours, in seconds
        self._zero = time.time() - time.perf_counter()  # what the database's clock says at 0 of ours for attempts
        self._codes: set[str] = set(Code)

    def know(self, job_types: Iterable[str]) -> None:
        """Zeros too are news: a rate needs a value from before the first job."""
        for name in job_types:
            self.claims[name] += 0
            self.completions[name] += 0
            self.latency[name], self.attempts[name]

    def clock(self, database: datetime) -> None:
        """What the database's clock says now: due is what is due by that one."""
        self._ahead = database.timestamp() - time.time()

    def now(self) -> datetime:
        """By the database's clock, as far as we know it."""
        return datetime.fromtimestamp(time.time() + self._ahead, UTC)

    def claimed(self, jobs: Iterable[Claimed]) -> None:
        self._zero = time.time() + self._ahead - time.perf_counter()  # anew each time: clocks are set
        self.claims.update(map(TYPE, jobs))

    def began(self, job: Claimed, at: float) -> None:
        """`at` by `perf_counter`. What was claimed ahead began later than it was claimed."""
        late = at + self._zero - job.run_at.timestamp()
        # As Histogram.observe, but a call less for each job.
        histogram = self.latency[job.job_type]
        histogram.buckets[bisect_left(LATENCY_BOUNDS, late)] += 1
        if late > 0:
            histogram.sum += late

    def tried(self, job_type: str, seconds: float) -> None:
        self.attempts[job_type].observe(seconds)

    def completed(self, jobs: Iterable[Claimed]) -> None:
        self.completions.update(map(TYPE, jobs))

    def ended(self, job: Claimed, outcome: str, code: str = "") -> None:
        if outcome == "completed":
            self.completions[job.job_type] += 1
        else:
            self.others[job.job_type, outcome, self._bounded(code)] += 1

    def failed(self, loop: str) -> None:
        self.failures[loop] += 1

    def _bounded(self, code: str) -> str:
        if code and code not in self._codes:
            if len(self._codes) >= len(Code) + MOST_CODES:
                return OTHER
            self._codes.add(code)
        return code

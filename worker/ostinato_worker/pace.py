"""How many jobs to hold at once: one for each slot, and ahead of those as many as take about 100 ms. No I/O.

Very short jobs would else wait for the database more than they run. Long ones are never held ahead, since another
worker could run them meanwhile.
"""

from typing import Final

AHEAD_SECONDS: Final = 0.1
MOST_AHEAD: Final = 2_000
SAMPLE_SECONDS: Final = 0.005


class Pace:
    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self.rate = 0.0  # jobs per second, while there were any
        # Of the sample under way: `_since` moves along while there is no work.
        self._since = 0.0
        self._until = 0.0
        self._finished = 0

    @property
    def window(self) -> int:
        """How many may be claimed and not yet recorded."""
        return self.concurrency + min(MOST_AHEAD, int(self.rate * AHEAD_SECONDS))

    def began(self, now: float) -> None:
        """There is work again after there was none. Rounds that are shorter than a sample are one together."""
        self._since += now - self._until

    def finished(self, jobs: int, now: float) -> None:
        self._finished += jobs
        self._until = now
        lasted = now - self._since
        if lasted >= SAMPLE_SECONDS:
            sample = self._finished / lasted
            self.rate = sample if not self.rate else (self.rate + sample) / 2
            self._since, self._finished = now, 0

    def stalled(self) -> None:
        """What was held ahead did not get its turn in time."""
        self.rate = 0.0

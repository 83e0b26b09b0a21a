"""How much of everything. One place, since a look wants a tenth of it."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Sizes:
    throughput: int = 20_000
    long: int = 100_000
    single: int = 5_000
    bulk: int = 20_000
    latency: int = 500
    backlog: int = 1_000_000
    deep: int = 5_000
    business: int = 5_000
    pinned: int = 60_000
    rounds: int = 5  # with the horizon pinned
    runs: int = 3  # of which the median counts
    attempts: int = 3  # at a run that a neighbour disturbed
    patience: float = 90  # seconds to wait for the neighbours to be quiet
    tune_seconds: float = 6
    timeout: float = 150
    idle_seconds: float = 30

    def tenth(self) -> Sizes:
        return replace(
            self,
            throughput=self.throughput // 10,
            long=self.long // 10,
            single=self.single // 10,
            bulk=self.bulk // 10,
            latency=self.latency // 10,
            backlog=self.backlog // 10,
            deep=self.deep // 10,
            business=self.business // 10,
            pinned=self.pinned // 10,
            runs=1,
            attempts=1,
            patience=0,
            tune_seconds=3,
            idle_seconds=5,
        )

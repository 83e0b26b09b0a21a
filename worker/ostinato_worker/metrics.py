"""The tally and the condition of a worker as Prometheus reads them.

A registry of each worker's own, so that two in one process do not meet. What handlers count in the default registry of
prometheus_client is shown as well, with the process's memory and CPU: nobody else serves it.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ostinato_worker.condition import Condition
from ostinato_worker.tally import Histogram, Tally

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST


class Metrics(Collector):
    def __init__(self, tally: Tally, condition: Callable[[], Condition]) -> None:
        self._tally = tally
        self._condition = condition
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def page(self) -> bytes:
        return generate_latest(self._registry) + generate_latest(REGISTRY)

    def describe(self) -> Iterator[Metric]:
        """Names only: a worker that has not started has no numbers."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        yield from self._jobs()
        yield from self._slots()
        yield from self._database()

    def _jobs(self) -> Iterator[Metric]:
        tally = self._tally
        claimed = CounterMetricFamily("ostinato_jobs_claimed", "Jobs claimed.", labels=["job_type"])
        for name, count in tally.claims.items():
            claimed.add_metric([name], count)
        yield claimed
        finished = CounterMetricFamily(
            "ostinato_attempts_finished",
            "Attempts whose end is recorded, by what became of the job.",
            labels=["job_type", "outcome", "code"],
        )
        for name, count in tally.completions.items():
            finished.add_metric([name, "completed", ""], count)
        for labels, count in tally.others.items():
            finished.add_metric(labels, count)
        yield finished
        yield _histogram("ostinato_attempt_duration_seconds", "How long attempts took.", tally.attempts)
        yield _histogram(
            "ostinato_queue_latency_seconds",
            "From when a job was due until its handler began, by the database's clock.",
            tally.latency,
        )

    def _slots(self) -> Iterator[Metric]:
        now = self._condition()
        yield GaugeMetricFamily("ostinato_worker_ready", "Whether it can claim.", value=now.unready is None)
        yield GaugeMetricFamily("ostinato_worker_slots", "Jobs that may run at once.", value=now.slots)
        yield GaugeMetricFamily("ostinato_worker_slots_busy", "Slots in use.", value=now.busy)
        yield GaugeMetricFamily("ostinato_worker_jobs_ahead", "Jobs claimed that wait for a slot.", value=now.ahead)

    def _database(self) -> Iterator[Metric]:
        tally = self._tally
        yield CounterMetricFamily("ostinato_lease_renewals", "Renewals of the lease.", value=tally.renewals)
        yield CounterMetricFamily(
            "ostinato_lease_renewal_failures", "Renewals that failed and were tried again.", value=tally.late_renewals
        )
        yield CounterMetricFamily(
            "ostinato_leases_lost", "Leases lost: its jobs went to others.", value=tally.leases_lost
        )
        again = CounterMetricFamily(
            "ostinato_worker_reconnects", "Times that a loop failed and began again.", labels=["loop"]
        )
        for loop, count in tally.failures.items():
            again.add_metric([loop], count)
        yield again


def _histogram(name: str, help_: str, by_type: Mapping[str, Histogram]) -> Metric:
    family = HistogramMetricFamily(name, help_, labels=["job_type"])
    for job_type, histogram in by_type.items():
        bounds = [*map(str, histogram.bounds), "+Inf"]
        cumulative = accumulate(histogram.buckets)
        family.add_metric([job_type], list(zip(bounds, map(float, cumulative), strict=True)), histogram.sum)
    return family

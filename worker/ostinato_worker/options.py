"""What a worker is told to be like."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self

from ostinato.durations import Duration, parse_duration
from ostinato.errors import InvalidArgument
from ostinato.names import check_namespace, check_queue
from ostinato.newjob import LARGEST, check_integer, check_timeout
from ostinato.settings import Settings

MOST_QUEUES = 100
LAST_PORT = 65_535
GOODBYE = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class Options:
    """`grace`: all that a worker may take from the first SIGTERM to its end. `stop_grace`: how long an attempt may take
    to end after it was told to, before its verdict is given without it."""

    queues: Sequence[str]
    namespace: str
    concurrency: int
    max_attempts: int
    poison: int
    lease: timedelta
    timeout: timedelta | None = None
    grace: timedelta = timedelta(seconds=25)
    stop_grace: timedelta = timedelta(seconds=5)
    pool: str | None = None
    pod: str | None = None
    health_port: int | None = None
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def notice(self) -> timedelta:
        """So long before the end of the grace running jobs are told to stop: half of it is theirs in any case."""
        return min(self.stop_grace, self.grace / 2)

    @property
    def goodbye(self) -> timedelta:
        """So long before it whoever did not stop is given up: it takes a moment to write down what became of them."""
        return min(GOODBYE, self.notice / 2)

    @classmethod
    def read(
        cls,
        settings: Settings,
        *,
        queues: Sequence[str],
        concurrency: int,
        namespace: str | None,
        timeout: Duration | None,
        grace: Duration,
        stop_grace: Duration,
        pool: str | None,
        pod: str | None,
        health_port: int | None,
        **others: Any,
    ) -> Self:
        names = [queues] if isinstance(queues, str) else list(dict.fromkeys(queues))
        if not 1 <= len(names) <= MOST_QUEUES:
            raise InvalidArgument("queues", queues, f"it must name from 1 to {MOST_QUEUES} queues")
        return cls(
            queues=[check_queue(name) for name in names],
            namespace=check_namespace(namespace or settings.namespace),
            concurrency=check_integer("concurrency", concurrency, 1, LARGEST),
            timeout=None if timeout is None else check_timeout(timeout),
            grace=parse_duration("grace", grace),
            stop_grace=parse_duration("stop_grace", stop_grace),
            max_attempts=settings.max_attempts,
            poison=settings.poison,
            lease=settings.lease,
            pool=pool or settings.pool,
            pod=pod or settings.pod,
            health_port=None if health_port is None else check_integer("health_port", health_port, 0, LAST_PORT),
            **others,
        )

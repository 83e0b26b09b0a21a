"""A worker that runs what is due in a test's database, and ends."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from ostinato.database import Database
from ostinato.dsn import Dsn
from ostinato.postgres import PostgresPool
from ostinato.store import Claimed
from ostinato.store.statements import load
from ostinato.testing.clock import Clock, shift
from ostinato_worker import Worker
from ostinato_worker.registry import Jobs
from ostinato_worker.worker import State

SQL: Final = load("testing")


async def drain(
    database: "str | Dsn | PostgresPool",
    jobs: Jobs = None,
    *,
    queues: Sequence[str] = ("default",),
    namespace: str | None = None,
    state: State | None = None,
    until_empty: bool = False,
    at_most: int = 1_000,
    clock: Clock | None = None,
) -> dict[str, int]:
    """Run what is due, and what that enqueues, with a real worker; say how many came to which end.

    until_empty    let time pass until nothing waits for it any more: retries, delayed jobs, what a rate holds back
    at_most        so many attempts are enough: a job that enqueues itself again would go on for ever
    clock          what `ctx.now()` says; it goes along when time passes. Without one it is the database's time

    It sees what is committed. The other options are those of a Worker. In a test that is not asynchronous:
    asyncio.run(drain(…)).
    """
    worker = Drainer(
        database, jobs, queues=queues, namespace=namespace, state=state, grace="5s", at_most=at_most, clock=clock
    )
    counts = Counter(await worker.drain())
    while until_empty and worker.within_bounds and await worker.let_time_pass():
        counts.update(await worker.drain())
    if not worker.within_bounds:
        rule = "does a job enqueue itself again and again? If not, raise at_most"
        raise AssertionError(f"{worker.begun} attempts and still not done, after {dict(counts)}: {rule}")
    return dict(counts)


class Drainer(Worker):
    def __init__(self, *given: Any, at_most: int, clock: Clock | None, **options: Any) -> None:
        super().__init__(*given, **options)
        self.begun = 0
        self._at_most = at_most
        self._clock = clock

    @property
    def within_bounds(self) -> bool:
        return self.begun <= self._at_most

    def now(self) -> datetime:
        return self._clock.now() if self._clock else super().now()

    async def let_time_pass(self) -> bool:
        """Until the next of its jobs is due, or its rate lets it run. False: none waits for its time."""
        options = self._options
        async with Database.open(self._where, self._settings, largest=2) as database, database.lend() as conn:
            given = {"namespace": options.namespace, "queues": list(options.queues), "types": self._jobs.served}
            wait = await SQL["until_next"].fetchval(conn, **given)
            if wait is not None:
                await shift(conn, wait)
        if wait is not None and self._clock:
            self._clock.advance(wait)
        return wait is not None

    def _take(self, jobs: list[Claimed]) -> None:
        super()._take(jobs)
        self.begun += len(jobs)
        if not self.within_bounds:
            self.stop()

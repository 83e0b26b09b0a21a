"""Found because its package was named."""

from ostinato import job
from tests.worker.registered import shallow

__all__ = ["deep", "shallow"]


@job("deep", version=3, queue="mail", max_running=2, rate="10/s")
async def deep(payload: dict[str, int]) -> None: ...

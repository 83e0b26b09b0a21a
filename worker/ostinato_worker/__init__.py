"""The worker: claims jobs and runs them."""

from ostinato_worker.worker import Worker

__all__ = ["Worker"]

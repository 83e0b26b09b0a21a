"""The folder outside of the checkout in which the peers live. The only reader of the environment here."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$OSTINATO_BENCH_CACHE`, or our own; root's is in /var, where the server's user can pass."""
    if given := os.environ.get("OSTINATO_BENCH_CACHE"):
        folder = Path(given).expanduser().resolve()
    elif os.geteuid() == 0:
        folder = Path("/var/cache/ostinato-bench")
    else:
        folder = Path.home() / ".cache" / "ostinato-bench"
    if not folder.exists():
        folder.mkdir(parents=True, mode=0o755)
        folder.chmod(0o755)  # whatever the umask
    return folder


def environment(**words: str) -> dict[str, str]:
    """Ours with a few words more, for a program that we start."""
    return {**os.environ, **words}

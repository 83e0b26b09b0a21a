"""The end of a process that ran other people's code: what hangs there may delay it for a moment, and not prevent it.

Python waits for threads of executors (`asyncio.to_thread`) and for coroutines that ignore their cancellation, for ever.
"""

import logging
import os
import sys
import threading
import time
from contextlib import suppress
from typing import Final

LOG: Final = logging.getLogger("ostinato.worker")
SHORTEST: Final = 0.3
PATIENCE: Final = 3.0  # for what else ends with the process: exporters that flush, threads that finish


def end_soon(code: int, within: float = PATIENCE) -> None:
    """Begin the countdown; a process that ends by itself never hears of it. Of two the shorter counts."""
    seconds = min(PATIENCE, max(SHORTEST, within))
    threading.Thread(target=_count_down, args=(code, seconds), name="ostinato-ending", daemon=True).start()


def _count_down(code: int, seconds: float) -> None:
    time.sleep(seconds)
    ours = (threading.main_thread(), threading.current_thread())
    names = ", ".join(thread.name for thread in threading.enumerate() if thread not in ours and not thread.daemon)
    LOG.warning("something does not end (threads: %s): the process ends without it", names or "none, so a coroutine")
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)

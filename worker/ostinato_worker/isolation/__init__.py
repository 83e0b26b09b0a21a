"""Jobs with `isolation="process"`: each attempt in an operating-system process of its own. Linux only.

worker ──exec──▶ server ──fork──▶ child, in a session of its own
   └────────── a line per attempt ──┘

The server is one thread that has the handlers' modules imported: the worker, which has threads, never forks. Nothing
that comes from a child is believed: it runs other people's code. Whatever it does, `perform` ends.
"""

from ostinato_worker.isolation.isolator import Isolator
from ostinato_worker.isolation.outcomes import CannotStart, Stopped

__all__ = ["CannotStart", "Isolator", "Stopped"]

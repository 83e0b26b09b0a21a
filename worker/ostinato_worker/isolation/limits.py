"""What a process may use. Each process that it starts may use as much again: the kernel counts them one by one."""

import math
import resource
from pathlib import Path


def limit(memory: int | None, cpu: float | None) -> None:
    """`memory` in bytes, beyond what is mapped now; `cpu` in seconds, of which the kernel counts whole ones."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        _lower(resource.RLIMIT_AS, _mapped() + memory)
    if cpu is not None:
        # SIGXCPU at the soft limit; SIGKILL at the hard one, for those who do not listen.
        _lower(resource.RLIMIT_CPU, max(math.ceil(cpu), 1), reserve=1)


def _mapped() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _lower(kind: int, soft: int, reserve: int = 0) -> None:
    _, highest = resource.getrlimit(kind)
    hard = soft + reserve if highest == resource.RLIM_INFINITY else min(soft + reserve, highest)
    resource.setrlimit(kind, (min(soft, hard), hard))

"""How often the kernel has killed for want of memory: in our control group, or if that is hidden, on the machine."""

from pathlib import Path
from typing import Final

MACHINE: Final = Path("/proc/vmstat")


def kills() -> int:
    for file in (*_of_our_group(), MACHINE):
        try:
            facts = dict(line.split(maxsplit=1) for line in file.read_text().splitlines())
            return int(facts["oom_kill"])
        except (OSError, KeyError, ValueError):
            continue
    return 0


def _of_our_group() -> list[Path]:
    try:
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return []
    root = Path("/sys/fs/cgroup")
    memory = [path.lstrip("/") for _, controllers, path in groups if "memory" in controllers.split(",")]
    unified = [path.lstrip("/") for _, controllers, path in groups if not controllers]
    return [
        *(root / "memory" / path / "memory.oom_control" for path in memory),
        *(root / path / "memory.events" for path in unified),
    ]

"""What a worker is like at one moment, and whether it can do its work. No I/O."""

from dataclasses import dataclass
from typing import Final

from ostinato_worker.claimer import POLL_SECONDS

RECENT: Final = 3 * POLL_SECONDS  # a worker with room that has not claimed for longer cannot


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """`silent` is for how many seconds it has had room and no answer to a claim; None: it has had none yet."""

    registered: bool = False
    stopping: bool = False
    draining: bool = False
    holds_lease: bool = False
    has_room: bool = False
    silent: float | None = None
    slots: int = 0
    busy: int = 0
    ahead: int = 0

    @property
    def unready(self) -> str | None:
        """Why it cannot claim, in words. With all slots busy it need not: then the lease decides."""
        if self.stopping:
            return "it is stopping: it claims nothing more"
        if not self.registered:
            return "it is not registered in the database (yet)"
        if not self.holds_lease:
            return "it does not hold its lease: the database did not answer in time"
        if self.draining:
            return "it was told to drain: it claims nothing more"
        if not self.has_room:
            return None
        if self.silent is None:
            return "it has not claimed yet"
        if self.silent > RECENT:
            return f"its last claim that the database answered was {self.silent:.0f} s ago"
        return None

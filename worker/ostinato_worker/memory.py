"""Python's garbage collector, as a program wants it that does nothing but run jobs."""

import gc
from typing import Final

# An attempt makes some objects and drops them: they are freed by counting references. By Python's own thresholds
# collecting what is left took a twentieth of a worker's time and found nothing.
THRESHOLDS: Final = (10_000, 20, 20)


def settle() -> None:
    """For the whole process, so not where a worker is embedded. What is loaded by now is there to stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)

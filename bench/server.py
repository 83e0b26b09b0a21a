"""How every server that is measured on is set: the same for both sides of a ratio."""

from __future__ import annotations

from typing import Final

# No checkpoint inside a run: its full-page images would hit whoever comes next.
SETTINGS: Final = {"shared_buffers": "1GB", "max_wal_size": "16GB", "checkpoint_timeout": "1h"}

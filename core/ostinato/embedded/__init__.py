"""A PostgreSQL server of our own, for a project that has none: `make run`, `ostinato dev` and the tests."""

from ostinato.embedded.binaries import wheel_bin_dirs
from ostinato.embedded.folders import default_data_dir
from ostinato.embedded.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres", "default_data_dir", "wheel_bin_dirs"]

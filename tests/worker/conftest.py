"""Workers as processes of their own, on a real server."""

from tests.cli.conftest import dsn, empty_dsn, folder, server

__all__ = ["dsn", "empty_dsn", "folder", "server"]

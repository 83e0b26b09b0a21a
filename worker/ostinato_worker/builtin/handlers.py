"""The built-in handlers that these settings make possible."""

from ostinato.handler import Handler
from ostinato.postgres import PostgresPool
from ostinato_worker.builtin.http import http_handler
from ostinato_worker.builtin.log import log_handler
from ostinato_worker.builtin.settings import BuiltinSettings
from ostinato_worker.builtin.sql import sql_handler
from ostinato_worker.builtin.statement import read_statements


def builtin_handlers(settings: BuiltinSettings, pool: PostgresPool) -> list[Handler]:
    """Without statements no `sql`: such jobs are for the workers that have some."""
    handlers = [http_handler(settings), log_handler()]
    if settings.sql_file is not None:
        handlers.append(sql_handler(read_statements(settings.sql_file), pool))
    return handlers

"""Handlers that need no code: `http` delivers webhooks, `sql` runs configured statements, `log` writes a line.

What a payload may say is less than what an operator may: secrets, SQL and forbidden addresses are settings, and a
payload only names them. No secret leaves this room but in a request to whom it is for.
"""

from ostinato_worker.builtin.handlers import builtin_handlers
from ostinato_worker.builtin.settings import BuiltinSettings

__all__ = ["BuiltinSettings", "builtin_handlers"]

"""How a command ends, for the shell. Documented in `ostinato --help`."""

from typing import Final

DONE: Final = 0
NOT_DONE: Final = 1
BAD_USAGE: Final = 2
NO_DATABASE: Final = 3
PIPE_CLOSED: Final = 141  # as a shell reports SIGPIPE

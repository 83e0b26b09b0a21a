"""`ostinato`: the command line. Starts light: whoever presses Ctrl-C while Python still imports sees no traceback."""

import os
import signal
import sys
from typing import NoReturn

INTERRUPTED = 130  # as a shell reports SIGINT


def main() -> None:
    signal.signal(signal.SIGINT, _leave)
    from ostinato_cli.commands import run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run(sys.argv[1:])
    signal.signal(signal.SIGINT, _leave)
    sys.exit(code)


def _leave(*_: object) -> NoReturn:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()

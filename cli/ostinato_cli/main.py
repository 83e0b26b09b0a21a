"""`ostinato`: the command line. Starts light: whoever presses Ctrl-C while Python still imports sees no traceback."""

import signal
import sys


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from ostinato_cli.commands import run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)


if __name__ == "__main__":
    main()

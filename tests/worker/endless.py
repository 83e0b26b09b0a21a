"""A module whose import does not end."""

import signal

signal.pause()

"""How the command writes its log: a line of JSON per record for machines, or text for people. Both hide secrets.

A library that is embedded leaves logging to its application: only a process of ours sets this up.
"""

import json
import logging
import re
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Literal

LOG: Final = logging.getLogger("ostinato")
Format = Literal["text", "json"]
HIDDEN: Final = "***"
FACTS: Final = ("job_id", "job_type", "attempt", "trace_id")  # what `ctx.logger` says of a job
# Quoted, with the b of bytes; quoted in JSON that is itself a string in JSON; or a word.
VALUE: Final = (
    r"""(?:b?"(?:[^"\\]|\\.)*"|b?'(?:[^'\\]|\\.)*'"""
    r"""|\\"(?:[^"\\]|\\\\(?:\\["\\]|[^"\\]))*\\"|(?!\\["'])[^\s"',;&)}\]]+)"""
)
WORDS: Final = (
    r"(?:password|passwd|pwd|passphrase|secret(?:[_-]?access)?(?:[_-]?key)?|(?:api|private)[_-]?key|[a-z][_-]token)"
)
IS: Final = r"[ \t]?[:=][ \t]{0,4}"
SCHEMES: Final = r"(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?)"

# Each hides its group `secret`. None begins with a repetition, nor looks far ahead: that would be slow on a long word.
SECRETS: Final = (
    re.compile(r"://[^\s/?#:@]*:(?P<secret>[^\s/?#]+)@"),  # a DSN's
    # A database's, with a bare slash in the password. Up to the next URL: else each would be looked through to the end.
    re.compile(rf"""(?i:{SCHEMES})(?:\+[a-z0-9]{{1,16}})?://[^\s/?#:@]*:(?P<secret>(?:(?!://)[^\s"'])+)@"""),
    re.compile(r"whsec_(?P<secret>[A-Za-z0-9+/=_-]+)"),
    re.compile(rf"(?i:{WORDS}){IS}(?P<secret>{VALUE})"),
    re.compile(rf"""(?i:{WORDS}|token)\\?["']{IS}(?P<secret>{VALUE})"""),  # of a dict or of JSON
    re.compile(rf"(?i:token)[ \t]?=[ \t]?(?P<secret>{VALUE})"),
    # With a colon it is as a rule what a parser did not expect: `unexpected token: else`.
    re.compile(rf"(?i:token):[ \t]{{0,4}}(?=\S{{0,64}}[0-9])(?P<secret>{VALUE})"),
    re.compile(rf"""(?i:api-key)["'],[ \t]?(?P<secret>{VALUE})"""),  # of a list of headers
    re.compile(r"""(?i:authorization)\\?["']?\s?[:=,]\s?b?\\?["']?(?P<secret>(?:[A-Za-z]+ )?[^\s"'\\,;]+)"""),
    re.compile(r"(?i:bearer) (?P<secret>[A-Za-z0-9._~+/=-]{8,})"),
    re.compile(
        r"""(?i:cookie)\\?["']?\s?[:=,]\s?b?\\?["']?(?P<secret>[^\s"'\\,;=]{1,128}=[^\s"'\\,;]*(?:;\s?[^\s"'\\,;]+)*)"""
    ),
)


def redact(text: str) -> str:
    for pattern in SECRETS:
        text = pattern.sub(_hide, text)
    return text


def _hide(found: re.Match[str]) -> str:
    whole, first = found[0], found.start()
    return whole[: found.start("secret") - first] + HIDDEN + whole[found.end("secret") - first :]


class JsonFormatter(logging.Formatter):
    """`worker` tells who writes: after a lost lease it is another."""

    def __init__(self, worker: Callable[[], object]) -> None:
        super().__init__()
        self._worker = worker

    def format(self, record: logging.LogRecord) -> str:
        worker = self._worker()
        line: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        line |= _facts(record)
        if worker is not None:
            line["worker_id"] = str(worker)
        if error := _error(self, record):
            line["exception"] = redact(error)
        # Only ASCII: half a character of a broken text must not keep the rest from being written.
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = " ".join(f"{name}={value}" for name, value in _facts(record).items())
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        said = f"{at}.{int(record.msecs):03} {record.levelname:7} {record.name}: {redact(record.getMessage())}"
        error = _error(self, record)
        return said + (f" [{facts}]" if facts else "") + (f"\n{redact(error)}" if error else "")


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name in FACTS if (value := record.__dict__.get(name)) is not None}


def _error(formatter: logging.Formatter, record: logging.LogRecord) -> str | None:
    if record.exc_info and record.exc_info[0] is not None:
        return formatter.formatException(record.exc_info)
    return record.exc_text


def log_to_stderr(format_: Format, level: str, worker: Callable[[], object]) -> None:
    """For the whole process, whoever logs; also what nobody caught, and Python's warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(worker) if format_ == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    logging.captureWarnings(True)
    sys.excepthook = _say_uncaught


def _say_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    LOG.critical("ended by an error that nobody caught: %s: %s", kind.__name__, error, exc_info=(kind, error, trace))

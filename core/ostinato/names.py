"""What names may look like: namespaces, queues, job types, keys. No I/O."""

import re
from typing import Final

from ostinato.errors import InvalidArgument

NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
QUEUE: Final = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,98}[A-Za-z0-9])?", re.ASCII)
# No "@": a worker says "type@2" for version 2 of a type.
JOB_TYPE: Final = re.compile(r"[A-Za-z0-9_]([-_.:/A-Za-z0-9]{0,199})?", re.ASCII)
MAX_KEY: Final = 500


def check_namespace(value: object) -> str:
    rule = "it must be a Kubernetes namespace name: a-z, 0-9 and '-', at most 63 characters"
    return _matching("namespace", value, NAMESPACE, rule)


def check_queue(value: object) -> str:
    rule = "it must be letters, digits, '-', '_' and '.', at most 100 characters, a letter or digit at both ends"
    return _matching("queue", value, QUEUE, rule)


def check_job_type(value: object) -> str:
    rule = "it must be letters, digits, '_', '-', '.', ':' and '/', at most 200 characters"
    return _matching("job_type", value, JOB_TYPE, rule)


def check_key(argument: str, value: object) -> str:
    """A key is the caller's own text: anything that Postgres can hold and an index can take."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_KEY:
        raise InvalidArgument(argument, value, f"it must be a text of 1 to {MAX_KEY} characters")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidArgument(argument, value, "it must be text that Postgres can hold: no NUL, no lone surrogate")
    return value


def _matching(argument: str, value: object, pattern: re.Pattern[str], rule: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise InvalidArgument(argument, value, rule)
    return value

"""What can go wrong, as one tree. Whoever catches `OstinatoError` catches everything that is ours.

OstinatoError
├── InvalidArgument          what was asked for breaks a rule (also a ValueError)
├── NotFound                 no such job
├── NotPossible              the job's state does not allow it
├── Unreachable              the database does not answer, or not to us
├── NotMigrated              the database has no schema of ours, or an older one
├── MigrationError           the schema and the migration files disagree
└── EmbeddedPostgresError    our own server cannot be used
"""

import reprlib
from typing import Final

_shortened: Final = reprlib.Repr()
_shortened.maxstring = _shortened.maxother = 80
_shortened.maxlevel = 3


class OstinatoError(Exception):
    """The root: never raised itself."""


class InvalidArgument(OstinatoError, ValueError):
    """Names the argument, the value and the rule, so that the caller knows what to change."""

    def __init__(self, argument: str, value: object, rule: str) -> None:
        super().__init__(f"{argument} is {shown(value)}; {rule}")
        self.argument = argument
        self.value = value
        self.rule = rule


class NotFound(OstinatoError, LookupError):
    """There is no job of that id in any room."""


class NotPossible(OstinatoError):
    """The job is there, but not in a state in which that can be done."""


class Unreachable(OstinatoError):
    """Says where, why, and what to check; never a password."""


class NotMigrated(OstinatoError):
    """A table, column or function that this code needs is not there: `ostinato migrate` makes it."""


class MigrationError(OstinatoError):
    """A migration file was changed or is missing, or could not be applied."""


class EmbeddedPostgresError(OstinatoError):
    """The embedded server cannot be started or is somebody else's."""


def shown(value: object) -> str:
    """Short, and safe for values that are huge, deep or circular."""
    try:
        return _shortened.repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return f"a {type(value).__name__} too large to show"

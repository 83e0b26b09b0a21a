"""Secrets: one file each in a directory, read when it is used: a changed file holds from the next attempt on."""

import re
from pathlib import Path
from typing import Annotated, Final

from pydantic import StringConstraints

from ostinato.failures import TransientError

# No "/" and no leading dot: a name cannot lead out of the directory.
NAME: Final = r"^[A-Za-z0-9_][-_.A-Za-z0-9]{0,252}$"
SecretName = Annotated[str, StringConstraints(pattern=NAME)]
SECRET_UNUSABLE: Final = "SECRET_UNUSABLE"
HIDDEN: Final = "***"


class SecretUnusable(TransientError):
    """Transient, since a person can mend it without touching the job. Never tells what is in the file."""

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"the secret {name!r} cannot be used: {rule}", code=SECRET_UNUSABLE)


class Secrets:
    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def read(self, name: str) -> str:
        """Its text, without the white space around it."""
        if self._directory is None:
            raise SecretUnusable(name, "set OSTINATO_SECRETS_DIR to a directory with a file of that name")
        if not re.fullmatch(NAME, name):
            raise SecretUnusable(name, "a name is letters, digits, '-', '_' and '.'")
        try:
            text = (self._directory / name).read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SecretUnusable(name, f"{reason}; OSTINATO_SECRETS_DIR must hold a file of that name") from None
        if not text:
            raise SecretUnusable(name, "the file is empty")
        return text


def redact(text: str, secrets: frozenset[str]) -> str:
    """The longest first: one secret may begin another."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text

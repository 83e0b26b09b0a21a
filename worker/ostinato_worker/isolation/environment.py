"""Which of the worker's environment variables a handler's process sees: no DSN, no token, nothing it was not given."""

from collections.abc import Collection, Mapping
from typing import Final

KEPT: Final = ("PATH", "HOME", "LANG", "TZ")


def clean(environment: Mapping[str, str], keep: Collection[str]) -> dict[str, str]:
    return {
        name: value for name, value in environment.items() if name in KEPT or name in keep or name.startswith("PYTHON")
    }

"""What one look found: how bad it is, what was seen, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"  # jobs run, but slower or less safely than they could
    FAIL = "fail"  # jobs do not run, or will stop soon


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    verdict: Verdict
    saw: str
    advice: str | None = None


def ok(check: str, saw: str) -> Finding:
    return Finding(check, Verdict.OK, saw)


def warn(check: str, saw: str, advice: str) -> Finding:
    return Finding(check, Verdict.WARN, saw, advice)


def fail(check: str, saw: str, advice: str) -> Finding:
    return Finding(check, Verdict.FAIL, saw, advice)

"""Exceptions as JSON and back. Those that are ours come back as what they were; the rest as their text."""

import traceback
from datetime import datetime, timedelta
from typing import Any, Final

from ostinato import errors
from ostinato.durations import parse_duration
from ostinato.errors import InvalidArgument, OstinatoError
from ostinato.failures import Code, JobError, PermanentError, Snooze, TransientError
from ostinato_worker.isolation.frames import Frame, Garbage

LONGEST: Final = 4_000
LONGEST_TRACEBACK: Final = 32_000
PLAIN: Final[dict[str, type[Exception]]] = {each.__name__: each for each in (TypeError, ValueError, LookupError)}


def describe(error: BaseException) -> Frame:
    """What a handler raised: a class of its own may have derived from ours, and put anything into the attributes."""
    match error:
        case Snooze(until=datetime() as until):
            return {"kind": "snooze", "until": until.isoformat()}
        case Snooze(delay=timedelta() as delay):
            return {"kind": "snooze", "delay": delay.total_seconds()}
        case TransientError():
            return {"kind": "transient", **_said(error), "retry_after": _seconds(error.retry_after)}
        case PermanentError():
            return {"kind": "permanent", **_said(error)}
        case JobError():
            return {"kind": "error", **_said(error)}
    text = "".join(traceback.format_exception(error))
    return {
        "kind": "other",
        "message": _clean(f"{type(error).__name__}: {_text(error)}")[:LONGEST],
        "traceback": _clean(text)[-LONGEST_TRACEBACK:],
    }


def rebuild(frame: Frame) -> Exception:
    """The exception that a handler raised; Garbage if this is no description of one."""
    try:
        return _rebuild(frame)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise Garbage(f"no description of an exception: {error}") from None


def _rebuild(frame: Frame) -> Exception:
    message, code = str(frame.get("message", ""))[:LONGEST], str(frame.get("code", Code.HANDLER_ERROR))[:100]
    match frame["kind"]:
        case "snooze":
            return Snooze(datetime.fromisoformat(frame["until"]) if "until" in frame else float(frame["delay"]))
        case "transient":
            return TransientError(message, code=code, retry_after=frame["retry_after"])
        case "permanent":
            return PermanentError(message, code=code)
        case "error" | "other":
            failure = JobError(message, code=code)
            if "traceback" in frame:
                failure.add_note(str(frame["traceback"]))
            return failure
    raise ValueError(f"kind is {frame['kind']!r}")


def describe_refusal(error: Exception) -> Frame:
    """Why the worker did not do what a handler asked for."""
    if isinstance(error, JobError | Snooze):
        return describe(error)
    kind = type(error).__name__
    return {"kind": "refusal", "type": kind, "message": _text(error)}


def refusal(frame: Frame) -> Exception:
    if frame["kind"] != "refusal":
        return rebuild(frame)
    name, message = frame["type"], frame["message"]
    ours: Any = getattr(errors, name, None)
    if isinstance(ours, type) and issubclass(ours, OstinatoError):
        # Past its own __init__, which wants the value that was refused: that has stayed with the worker.
        made = ours.__new__(ours, message)
        made.args = (message,)
        return made
    return PLAIN[name](message) if name in PLAIN else RuntimeError(f"{name}: {message}")


def _said(error: JobError) -> Frame:
    return {"code": _text(error.code), "message": _text(error)}


def _seconds(wait: object) -> float | None:
    try:
        return None if wait is None else parse_duration("retry_after", wait).total_seconds()  # type: ignore[arg-type]
    except InvalidArgument:
        return None


def _text(value: object) -> str:
    try:
        return _clean(str(value))[:LONGEST]
    except Exception as broken:  # Its own __str__ raises: that must not hide that it was raised.
        return f"(no text: {type(broken).__name__})"


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()

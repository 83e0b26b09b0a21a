"""What a payload may be: a JSON object that Postgres can hold, of a bounded size. No I/O."""

import json
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

from pydantic_core import PydanticSerializationError, from_json, to_json

from ostinato.errors import InvalidArgument

MAX_BYTES: Final = 128 * 1024
MAX_LEVELS: Final = 10
MAX_KEYS: Final = 500
LONGEST_NUMBER: Final = 4_000  # digits; Python refuses to read somewhat longer ones

Path = tuple[str, ...]


class Json(str):
    """The text of a value that keeps to the rules: as good as the value, and nobody changes it meanwhile."""

    __slots__ = ()


def encode_object(argument: str, value: object) -> str:
    """The JSON text of a mapping, pydantic model or dataclass; raises InvalidArgument if it breaks a rule."""
    text = _to_json(argument, value)
    if not text.startswith(b"{"):
        raise InvalidArgument(argument, value, "it must be an object: a dict, a pydantic model or a dataclass")
    _check(argument, value, text)
    return text.decode()


def encode_value(argument: str, value: object) -> Json | None:
    """The JSON text of what a handler reports: any JSON value, under the same limits. None stays None."""
    if value is None or isinstance(value, Json):
        return value
    text = _to_json(argument, value)
    _check(argument, value, text)
    return Json(text.decode())


def _to_json(argument: str, value: object) -> bytes:
    try:
        return to_json(value, inf_nan_mode="constants")
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        said = str(error).lower()
        if "surrogates" in said:
            raise InvalidArgument(argument, value, "it holds half of a surrogate pair, which is no text") from None
        if any(word in said for word in ("recursion", "circular", "depth")):
            raise InvalidArgument(argument, value, f"it is nested deeper than {MAX_LEVELS} levels") from None
        raise InvalidArgument(argument, value, f"it must be JSON: {error}") from None


def _check(argument: str, value: object, text: bytes) -> None:
    if len(text) > MAX_BYTES // 2 and (size := _stored_size(text)) > MAX_BYTES:
        raise InvalidArgument(argument, value, f"it has {size:,} bytes of JSON; the most is {MAX_BYTES:,}")
    if not _plainly_fine(value, text):
        _check_keys(argument, value, ())
        _check_tree(argument, value, text)


def _stored_size(text: bytes) -> int:
    """As the database counts it: Postgres writes a space after each comma and colon."""
    try:
        return len(json.dumps(from_json(text), ensure_ascii=False).encode())
    except ValueError:
        return len(text)


def _plainly_fine(value: object, text: bytes) -> bool:
    """Most payloads are small and flat: seen from the text alone, in a tenth of the time of a walk."""
    return (
        type(value) is dict
        and len(text) < LONGEST_NUMBER
        and text.count(b"{") == 1
        and text.count(b"[") < MAX_LEVELS
        and len(value) <= MAX_KEYS
        and all(type(key) is str for key in value)
        and b"\\u0000" not in text
        and b"NaN" not in text
        and b"Infinity" not in text
    )


def _check_keys(argument: str, value: object, path: Path) -> None:
    """On what was given: in JSON a key 1 has become "1" already, and two keys may have become one."""
    for name, child in _children(value):
        if not isinstance(name, str):
            raise InvalidArgument(argument, value, f"the key {name!r}{_at(path)} must be a string")
        _check_keys(argument, child, (*path, name))


def _check_tree(argument: str, value: object, text: bytes) -> None:
    keys = 0
    for node, path in _walk(argument, value, text):
        if isinstance(node, dict):
            keys += len(node)
            for name in node:
                _check_text(argument, name, path)
        elif isinstance(node, str):
            _check_text(argument, node, path)
        elif isinstance(node, float) and not isfinite(node):
            raise InvalidArgument(argument, value, f"JSON has no number {node}{_at(path)}")
    if keys > MAX_KEYS:
        raise InvalidArgument(argument, value, f"it has {keys:,} keys; the most is {MAX_KEYS}")


def _walk(argument: str, value: object, text: bytes) -> Iterator[tuple[object, Path]]:
    too_deep = f"it is nested deeper than {MAX_LEVELS} levels"
    try:
        todo: list[tuple[object, Path]] = [(from_json(text), ())]
    except ValueError as error:
        rule = "it has a number of too many digits" if "number" in str(error) else too_deep
        raise InvalidArgument(argument, value, rule) from None
    while todo:
        node, path = todo.pop()
        if isinstance(node, dict | list) and len(path) >= MAX_LEVELS:
            raise InvalidArgument(argument, value, too_deep + _at(path))
        todo.extend((child, (*path, name)) for name, child in _children(node))
        yield node, path


def _children(value: object) -> Iterator[tuple[Any, object]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from ((f"[{place}]", child) for place, child in enumerate(value))


def _check_text(argument: str, text: str, path: Path) -> None:
    if "\0" in text:
        raise InvalidArgument(argument, text, f"Postgres cannot hold the character NUL{_at(path)}")


def _at(path: Path) -> str:
    return f" (at {'.'.join(path).replace('.[', '[')})" if path else ""

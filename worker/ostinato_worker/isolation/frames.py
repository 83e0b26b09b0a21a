"""What goes over a child's line: four bytes of length, then a JSON object. Never a pickle: that would run its code."""

import asyncio
import json
from typing import Any, Final

from pydantic_core import from_json

LARGEST: Final = 2**20
HEAD: Final = 4
Frame = dict[str, Any]


class Garbage(Exception):
    """It is not a frame."""


def encode(frame: Frame) -> bytes:
    body = json.dumps(frame).encode()
    if len(body) > LARGEST:
        raise Garbage(f"a frame of {len(body):,} bytes; the most is {LARGEST:,}")
    return len(body).to_bytes(HEAD, "big") + body


async def read(reader: asyncio.StreamReader) -> Frame | None:
    """The next frame; None when the other side has closed the line or died, even in the middle of one."""
    try:
        size = int.from_bytes(await reader.readexactly(HEAD), "big")
        if size > LARGEST:
            raise Garbage(f"a frame of {size:,} bytes; the most is {LARGEST:,}")
        return _decode(await reader.readexactly(size))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _decode(body: bytes) -> Frame:
    try:
        frame = from_json(body)
    except ValueError as error:
        raise Garbage(str(error)) from None
    if not isinstance(frame, dict):
        raise Garbage("it is not a JSON object")
    return frame

"""Signatures after the Standard Webhooks convention (symmetric, version 1). No I/O.

A receiver recomputes them over "{webhook-id}.{webhook-timestamp}.{body}" and knows who sent it, when, and that it is
the same message when it comes again.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Final

PREFIX: Final = "whsec_"
SHORTEST: Final = 24
LONGEST: Final = 64
RULE: Final = (
    f"it must be one or more keys, separated by spaces, each {PREFIX} and the base64 of {SHORTEST} to {LONGEST} bytes"
)


def read_keys(text: str) -> tuple[bytes, ...]:
    """The keys of a secret; several while one is rotated. Raises ValueError with the rule, never with the text."""
    return tuple(_key(word) for word in text.split())


def sign(keys: tuple[bytes, ...], message_id: str, timestamp: int, body: bytes) -> str:
    """One signature per key, so that receivers may know either."""
    content = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{_base64(hmac.digest(key, content, hashlib.sha256))}" for key in keys)


def _key(word: str) -> bytes:
    try:
        key = base64.b64decode(word.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError(RULE) from None
    if not word.startswith(PREFIX) or not SHORTEST <= len(key) <= LONGEST:
        raise ValueError(RULE)
    return key


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()

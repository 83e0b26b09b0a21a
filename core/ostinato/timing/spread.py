"""A number from a schedule's name: the same on every machine and after every restart, and unlike its neighbours'."""

import hashlib


def spread(purpose: str, key: str) -> int:
    """Of 64 bits. `purpose` keeps a schedule's numbers apart: its minute says nothing of its hour."""
    return int.from_bytes(hashlib.sha256(f"{purpose} {key}".encode()).digest()[:8])

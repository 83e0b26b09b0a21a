"""Amounts of memory as people write them: "512MiB", "2GiB", or a number of bytes. No I/O."""

import re
from typing import Final

from ostinato.errors import InvalidArgument

Size = int | str

RULE: Final = "write it as '512MiB', '2GiB', or a number of bytes"
UNITS: Final = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
TEXT: Final = re.compile(r"(\d{1,9})\s*(KiB|MiB|GiB)", re.ASCII)


def parse_size(argument: str, value: Size) -> int:
    match = TEXT.fullmatch(value.strip()) if isinstance(value, str) else None
    size = int(match[1]) * UNITS[match[2]] if match else value
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise InvalidArgument(argument, value, RULE)
    return size

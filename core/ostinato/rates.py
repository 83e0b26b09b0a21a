"""How many in how long, as people write it: "100/m", "5/s", "1000/h", "10/30s". No I/O."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Self

from ostinato.durations import parse_duration
from ostinato.errors import InvalidArgument

RULE: Final = "write it as '100/m': a whole number, '/', and s, m, h, d or a time such as 30s"
TEXT: Final = re.compile(r"(\d{1,9})\s*/\s*(\w+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rate:
    count: int
    period: timedelta

    @classmethod
    def parse(cls, text: str) -> Self:
        match = TEXT.fullmatch(text.strip()) if isinstance(text, str) else None
        if not match or int(match[1]) < 1:
            raise InvalidArgument("rate", text, RULE)
        unit = match[2] if match[2][0].isdigit() else f"1{match[2]}"
        try:
            period = parse_duration("rate", unit)
        except InvalidArgument:
            raise InvalidArgument("rate", text, RULE) from None
        if period <= timedelta(0):
            raise InvalidArgument("rate", text, RULE)
        return cls(int(match[1]), period)

    @property
    def per_second(self) -> float:
        return self.count / self.period.total_seconds()

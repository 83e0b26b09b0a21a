"""The built-in handler `log`: writes a line, and so proves that jobs run."""

import logging
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from ostinato import Context, job
from ostinato.handler import Handler


class LogLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    message: str = Field("alive", max_length=10_000)
    level: Literal["debug", "info", "warning", "error"] = "info"
    fields: dict[str, Any] = {}


def log_handler() -> Handler:
    @job("log")
    async def log(payload: LogLine, ctx: Context) -> None:
        # As JSON: a line break in a payload must not begin a line that we did not write.
        text = to_json({"message": payload.message} | ({"fields": payload.fields} if payload.fields else {})).decode()
        ctx.logger.log(logging.getLevelNamesMapping()[payload.level.upper()], "%s", text)

    return log

"""Handlers of a shop, which is tested with `ostinato.testing`."""

import threading
from typing import Any

from pydantic import BaseModel

from ostinato import Context, PermanentError, Snooze, SyncContext, TransientError, job


class Email(BaseModel):
    to: str


@job("send_email", queue="mail", max_attempts=3, backoff="10s")
async def send_email(payload: Email, ctx: Context) -> dict[str, Any]:
    match payload.to:
        case "busy":
            raise TransientError("try later", code="UPSTREAM_5XX", retry_after="90s")
        case "gone":
            raise PermanentError("no such address", code="NOT_FOUND")
        case "later":
            raise Snooze("5m")
        case "broken":
            raise KeyError(payload.to)
    return {"sent": payload.to, "attempt": ctx.attempt, "of": ctx.max_attempts}


@job("resize")
def resize(payload: dict[str, int], ctx: SyncContext) -> str:
    ctx.progress({"from": ctx.last_progress, "to": payload["width"]})
    ctx.emit("resized")
    ctx.enqueue("send_email", Email(to="ada"), delay="1h")
    return threading.current_thread().name


@job("greet", isolation="process", memory="1GiB")
def greet(payload: dict[str, str], ctx: SyncContext) -> str:
    ctx.progress(1)
    return f"hello {payload['name']}"


@job("pay", transaction=True)
async def pay(payload: dict[str, int], ctx: Context) -> int:
    await ctx.tx.execute("insert into payments (amount) values ($1)", payload["amount"])
    await ctx.enqueue("send_email", {"to": "ada"})
    if payload["amount"] < 0:
        raise PermanentError("nobody pays less than nothing")
    return payload["amount"]


@job("tell_time")
async def tell_time(ctx: Context) -> str:
    return ctx.now().isoformat()


@job("tell_time_isolated", isolation="process")
async def tell_time_isolated(ctx: Context) -> str:
    return ctx.now().isoformat()


@job("again")
async def again(ctx: Context) -> None:
    await ctx.enqueue("again")

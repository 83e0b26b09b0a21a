"""The built-in handler `sql`: runs statements that an operator configured; a payload only names them and binds values.

A statement with :limit is repeated until it affects fewer rows than that, each time in a transaction of its own: no
long transaction, no long locks, and what is done stays done when the attempt ends early.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from ostinato import Context, InvalidArgument, PermanentError, TransientError, job
from ostinato.failures import Code
from ostinato.handler import Handler
from ostinato.postgres import PostgresPool
from ostinato.store.foreign import REFUSED, run_foreign
from ostinato_worker.builtin.statement import VARIABLE, ConfiguredStatement


class SqlCall(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    args: dict[str, Any] = {}


def sql_handler(statements: Mapping[str, ConfiguredStatement], pool: PostgresPool) -> Handler:
    @job("sql")
    async def sql(payload: SqlCall, ctx: Context) -> dict[str, int]:
        statement = _named(payload.name, statements)
        values = _values(payload, statement)
        try:
            return {"rows": await _run(statement, values, pool, ctx)}
        except REFUSED as error:
            raise PermanentError(f"Postgres refuses {payload.name}: {error}", code="SQL_REFUSED") from None

    return sql


def _named(name: str, statements: Mapping[str, ConfiguredStatement]) -> ConfiguredStatement:
    if name not in statements:
        known = ", ".join(sorted(statements)) or "none"
        raise PermanentError(f"there is no statement {name!r}; {VARIABLE} has: {known}", code=Code.PAYLOAD_INVALID)
    return statements[name]


def _values(call: SqlCall, statement: ConfiguredStatement) -> list[Any]:
    try:
        return statement.values(call.args)
    except InvalidArgument as error:
        raise PermanentError(f"{call.name}: {error}", code=Code.PAYLOAD_INVALID) from None


async def _run(statement: ConfiguredStatement, values: list[Any], pool: PostgresPool, ctx: Context) -> int:
    """How many rows in all, with those of earlier attempts."""
    rows = _rows_before(ctx) if statement.limit else 0
    while True:
        count = await run_foreign(pool, statement.text, values)
        rows += count
        await ctx.progress({"rows": rows})
        if statement.limit is None or count < statement.limit:
            return rows
        if ctx.cancelled.is_set():
            raise TransientError(f"stopped after {rows:,} rows ({ctx.cancelled.reason})", code=Code.CANCELLED)


def _rows_before(ctx: Context) -> int:
    match ctx.last_progress:
        case {"rows": int(rows)}:
            return rows
    return 0

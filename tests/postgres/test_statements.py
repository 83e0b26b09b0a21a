"""Every statement fits the migrated schema, and the code reads what the schema gives."""

from dataclasses import fields
from datetime import datetime, timedelta
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest

from ostinato import store
from ostinato.lifecycle import State
from ostinato.store import workers
from ostinato.store.statements import Statement, load, names

# What asyncpg makes of each type.
PYTHON = {
    "uuid": UUID,
    "text": str,
    "int2": int,
    "int4": int,
    "int8": int,
    "bool": bool,
    "timestamptz": datetime,
    "interval": timedelta,
    "text[]": list,
    "uuid[]": list,
}
DDL = {"make_records", "be_brief", "be_patient"}
JSON = {"payload", "context", "attempts", "progress", "output", "info"}


def every_statement() -> list[Statement]:
    found = []
    for name in names():
        file = load(name)
        found += [statement for key, statement in file.statements.items() if key not in DDL]
        for choice in file.choices.values():
            found += [choice.given(frozenset()), choice.given(choice.options)]
            found += [choice.given(frozenset({option})) for option in choice.options]
    return found


async def test_postgres_can_explain_every_statement(conn: Any) -> None:
    for statement in every_statement():
        nulls = [None] * len(statement.parameters)

        plan = await conn.fetch(f"explain {statement.text}", *nulls)

        assert len(plan) > 0, statement.name


@pytest.mark.parametrize(
    ("file", "name", "record"),
    [
        ("moves", "claim", store.Claimed),
        ("moves", "claim_limited", store.Claimed),
        ("jobs", "get_job", store.Job),
        ("jobs", "list_jobs", store.Job),
        ("jobs", "count_jobs", store.QueueCount),
        ("workers", "list_workers", workers.Worker),
        ("workers", "renew_worker", workers.Renewal),
    ],
)
async def test_the_columns_are_those_that_the_code_reads_in_name_and_type(
    conn: Any, file: str, name: str, record: Any
) -> None:
    source = load(file)
    statement = source.choices[name].given(frozenset()) if name in source.choices else source[name]

    columns = (await conn.prepare(statement.text)).get_attributes()

    expected = [field.name for field in fields(record)] if hasattr(record, "__dataclass_fields__") else record._fields
    assert [column.name for column in columns] == list(expected)
    hints = get_type_hints(record)
    for column in columns:
        kinds = kinds_of(hints[column.name])
        if column.name in JSON:
            assert column.type.name == "text", f"{column.name}: JSON is read as text, whatever codecs there are"
        else:
            assert PYTHON[column.type.name] in kinds, f"{column.name} is {column.type.name}, read as {kinds}"


def kinds_of(hint: Any) -> set[Any]:
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    plain = {get_origin(kind) or kind for kind in kinds}
    return plain | ({str} if State in plain else set())


async def test_the_rooms_have_the_same_columns_in_the_same_order(conn: Any) -> None:
    rows = await conn.fetch(
        """
        select table_name, string_agg(column_name || ' ' || udt_name, ', ' order by ordinal_position) as columns
        from information_schema.columns
        where table_schema = 'ostinato' and table_name in ('jobs', 'job_history', 'dead_letters')
        group by table_name
        """
    )

    assert len(rows) == 3
    assert len({row["columns"] for row in rows}) == 1


async def test_the_view_has_the_columns_that_are_promised(conn: Any) -> None:
    promised = """id, namespace, queue, job_type, job_version, payload, state, priority, run_at, attempt, max_attempts,
        timeout, dedup_key, context, worker_id, lease, attempts, error_code, error_message, progress, output,
        schedule_id, cancel_requested_at, created_at, started_at, finished_at"""

    assert await conn.fetch(f"select {promised} from ostinato.all_jobs") == []

"""What a piece of code enqueued, as its own transaction sees it, on every driver."""

from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from ostinato import InvalidArgument, enqueue
from ostinato.testing import assert_enqueued, assert_not_enqueued, drain, enqueued
from tests.testing import handlers

OPTIONS: dict[str, Any] = {
    "queue": "mail",
    "priority": 4,
    "delay": "5m",
    "timeout": "30s",
    "max_attempts": 3,
    "context": {"tenant": "a", "trace": "t"},
    "dedup_key": "d",
    "concurrency_key": "c",
    "namespace": "shop",
    "job_version": 2,
}


class Email(BaseModel):
    to: str
    copies: int = 1


def look(conn: Any) -> None:
    enqueue(conn, "send_email", {"to": "ada", "copies": 2}, **OPTIONS)
    enqueue(conn, "work")

    job = assert_enqueued(conn, "send_email", {"to": "ada"}, **OPTIONS | {"context": {"tenant": "a"}})
    assert (job.payload, job.state) == ({"to": "ada", "copies": 2}, "pending")
    assert_not_enqueued(conn, "send_email", {"to": "bob"})
    assert [each.job_type for each in enqueued(conn)] == ["send_email", "work"]


async def look_async(conn: Any) -> None:
    await enqueue(conn, "send_email", {"to": "ada", "copies": 2}, **OPTIONS)
    await enqueue(conn, "work")

    job = await assert_enqueued(conn, "send_email", {"to": "ada"}, **OPTIONS | {"context": {"tenant": "a"}})
    assert (job.payload, job.state) == ({"to": "ada", "copies": 2}, "pending")
    await assert_not_enqueued(conn, "send_email", {"to": "bob"})
    assert [each.job_type for each in await enqueued(conn)] == ["send_email", "work"]


async def test_asyncpg_in_a_transaction_that_is_rolled_back(dsn: str) -> None:
    conn = await asyncpg.connect(dsn)
    transaction = conn.transaction()
    await transaction.start()
    await look_async(conn)
    await transaction.rollback()

    await assert_not_enqueued(conn)
    await conn.close()


def test_psycopg_and_its_uncommitted_transaction(dsn: str) -> None:
    with psycopg.connect(dsn) as conn:
        look(conn)
        conn.rollback()
        assert_not_enqueued(conn)


async def test_psycopg_async(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        await look_async(conn)


def test_sqlalchemy_connections_and_sessions(dsn: str) -> None:
    engine = sqlalchemy.create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as conn:
        look(conn)
    with Session(engine) as session:
        look(session)
    engine.dispose()


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_sqlalchemy_async(dsn: str, driver: str) -> None:
    engine = create_async_engine(dsn.replace("postgresql://", f"postgresql+{driver}://"))
    async with engine.connect() as conn:
        await look_async(conn)
    async with AsyncSession(engine) as session:
        await look_async(session)
    await engine.dispose()


@pytest.mark.parametrize("name", OPTIONS)
async def test_each_option_counts(conn: Any, name: str) -> None:
    await enqueue(conn, "work", **OPTIONS)
    other: dict[str, Any] = {
        name: {
            "priority": 5,
            "delay": "6m",
            "timeout": "31s",
            "max_attempts": 4,
            "context": {"tenant": "b"},
            "job_version": 1,
        }.get(name, "other")
    }

    await assert_enqueued(conn, "work", **{name: OPTIONS[name]})
    with pytest.raises(AssertionError, match=f"    {name}.* is .*, not "):
        await assert_enqueued(conn, "work", **other)


async def test_the_message_says_what_was_enqueued_and_how_that_differs_the_nearest_first(conn: Any) -> None:
    await enqueue(conn, "send_email", {"to": "cleo", "tags": ["x"]})
    near = await enqueue(conn, "send_email", {"to": "bob", "tags": [1]}, queue="mail")
    await enqueue(conn, "pack_item")
    await enqueue(conn, "pack_item")

    with pytest.raises(AssertionError) as failed:
        await assert_enqueued(conn, "send_email", {"to": "ada", "tags": [True], "cc": None}, queue="mail")

    lines = str(failed.value).splitlines()
    assert lines[0] == (
        "no send_email with payload {'cc': None, 'tags': [True], 'to': 'ada'}, queue 'mail' was enqueued; "
        "what was enqueued:"
    )
    assert lines[1] == f"  send_email {near.id} (pending) {{'tags': [1], 'to': 'bob'}}"
    assert lines[2:5] == [
        "    payload.to is 'bob', not 'ada'",
        "    payload.tags[0] is 1, not True",
        "    payload.cc is missing, not None",
    ]
    assert "    queue is 'default', not 'mail'" in lines
    assert lines[-1] == "of other types: pack_item (2)"


async def test_the_message_says_that_there_is_nothing_and_shows_no_endless_list(conn: Any) -> None:
    with pytest.raises(AssertionError, match="no work was enqueued; nothing was enqueued at all"):
        await assert_enqueued(conn, "work")

    for n in range(8):
        await enqueue(conn, "work", {"n": n})
    with pytest.raises(AssertionError, match="  and 3 more"):
        await assert_enqueued(conn, "work", {"n": 9})


async def test_a_count_is_exact(conn: Any) -> None:
    for _ in range(2):
        await enqueue(conn, "work")

    await assert_enqueued(conn, "work", count=2)
    with pytest.raises(AssertionError, match="2 work were enqueued, not 1; what was enqueued:"):
        await assert_enqueued(conn, "work", count=1)


async def test_what_should_not_be_there_is_shown(conn: Any) -> None:
    made = await enqueue(conn, "work", {"n": 1})

    with pytest.raises(AssertionError, match=f"1 work were enqueued, not none(.|\n)*{made.id}"):
        await assert_not_enqueued(conn, "work")
    with pytest.raises(AssertionError, match="1 job were enqueued"):
        await assert_not_enqueued(conn)


async def test_a_handler_stands_for_its_type_and_a_model_for_its_fields(conn: Any) -> None:
    await handlers.send_email.enqueue(conn, Email(to="ada"))

    await assert_enqueued(conn, handlers.send_email, Email(to="ada"), queue="mail")
    await assert_not_enqueued(conn, handlers.send_email, Email(to="ada", copies=2))


async def test_what_has_run_was_enqueued_all_the_same(dsn: str, conn: Any) -> None:
    await handlers.send_email.enqueue(conn, {"to": "ada"})
    await handlers.send_email.enqueue(conn, {"to": "gone"})

    await drain(dsn, [handlers.send_email], queues=["mail"])

    assert (await assert_enqueued(conn, "send_email", state="completed")).payload == {"to": "ada"}
    assert (await assert_enqueued(conn, "send_email", state="dead_lettered")).error_code == "NOT_FOUND"


async def test_an_expectation_that_there_cannot_be_is_named(conn: Any) -> None:
    for wrong, message in (
        ({"state": "ready"}, "state is 'ready'; it must be one of pending"),
        ({"delay": "soon"}, "delay is 'soon'"),
        ({"payload": [1]}, "payload is"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            await assert_enqueued(conn, "work", **wrong)
    with pytest.raises(TypeError, match="there is no 'queues'; there are namespace, queue"):
        await assert_enqueued(conn, "work", queues="mail")  # type: ignore[call-overload]

"""What a line of the log says, and what it hides."""

import json
import logging
import time
from typing import Any

import pytest

from ostinato.context import find_trace_id
from ostinato_worker.logs import JsonFormatter, TextFormatter, redact

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def record(message: str = "hello", error: BaseException | None = None, **facts: object) -> logging.LogRecord:
    about = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord("shop", logging.INFO, __file__, 1, message, (), about)
    made.__dict__.update(facts)
    return made


def line(made: logging.LogRecord, worker: object = None) -> dict[str, Any]:
    text = JsonFormatter(lambda: worker).format(made)
    assert "\n" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def raised(text: str) -> BaseException:
    try:
        raise RuntimeError(text)
    except RuntimeError as error:
        return error


def test_a_record_is_one_line_of_json() -> None:
    made = record("two\nlines", job_id="1", job_type="greet", attempt=2, trace_id=TRACE)
    made.created, made.msecs = 1_767_225_600.25, 250.0

    assert line(made, "w1") == {
        "time": "2026-01-01T00:00:00.250Z",
        "level": "info",
        "logger": "shop",
        "message": "two\nlines",
        "job_id": "1",
        "job_type": "greet",
        "attempt": 2,
        "trace_id": TRACE,
        "worker_id": "w1",
    }


def test_what_is_not_known_is_not_there() -> None:
    assert set(line(record())) == {"time", "level", "logger", "message"}


def test_an_exception_comes_along_with_its_secrets_hidden() -> None:
    found = line(record(error=raised("cannot connect to postgresql://me:hunter2@db/shop")))

    assert "Traceback" in found["exception"]
    assert "postgresql://me:***@db/shop" in found["exception"]
    assert "hunter2" not in found["exception"]


def test_half_a_character_does_not_keep_a_line_from_being_written() -> None:
    text = JsonFormatter(lambda: None).format(record("broken \ud83d, separated \u2028"))

    assert text.encode("ascii")


def test_text_for_people_says_whose_it_is() -> None:
    text = TextFormatter().format(record("sent, password=hunter2", job_id="1", job_type="greet", attempt=2))

    assert text.endswith("INFO    shop: sent, password=*** [job_id=1 job_type=greet attempt=2]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:hunter2@db:5432/shop?x=1", "postgresql://me:***@db:5432/shop?x=1"),
        ("redis://:hunter2@cache", "redis://:***@cache"),
        ("postgresql://me:hunt@er2@db/shop", "postgresql://me:***@db/shop"),
        ("host=db password=hunter2 dbname=shop", "host=db password=*** dbname=shop"),
        ("password='hunter 2' dbname=shop", "password=*** dbname=shop"),
        ("https://x/y?token=abc&page=2", "https://x/y?token=***&page=2"),
        ("ACCESS_TOKEN=abc", "ACCESS_TOKEN=***"),
        ("{'password': 'hunter2', 'user': 'me'}", "{'password': ***, 'user': 'me'}"),
        ('{"api_key": "a\\"bc", "n": 1}', '{"api_key": ***, "n": 1}'),
        ("Authorization: Bearer abc.def-ghi", "Authorization: ***"),
        ("authorization: Basic bWU6aHVudGVyMg==, accept: x", "authorization: ***, accept: x"),
        ("{'Authorization': 'Bearer abc.def', 'a': 1}", "{'Authorization': '***', 'a': 1}"),
        ("(b'authorization', b'Bearer abc.def')", "(b'authorization', b'***')"),
        ("{'pwd': b'abc'}", "{'pwd': ***}"),
        ("password: hunter2", "password: ***"),
        ("password=\\hunter2", "password=***"),
        ("refresh_token: hunter", "refresh_token: ***"),
        ("token: eyJhbGciOi9", "token: ***"),
        ("AWS_SECRET_ACCESS_KEY=hunter2", "AWS_SECRET_ACCESS_KEY=***"),
        ("X-Api-Key: hunter2", "X-Api-Key: ***"),
        ("(b'x-api-key', b'hunter2')", "(b'x-api-key', ***)"),
        ("Cookie: sid=abc; theme=dark", "Cookie: ***"),
        ("{'set-cookie': 'sid=abc; Path=/; Secure', 'a': 1}", "{'set-cookie': '***', 'a': 1}"),
        (r"{\"password\": \"hunter2\", \"n\": 1}", r"{\"password\": ***, \"n\": 1}"),
        (r"{\"password\": \"a\\\"hunter2\"}", r"{\"password\": ***}"),
        (r"{\"Authorization\": \"Basic bWU=\"}", r"{\"Authorization\": \"***\"}"),
        ("postgresql://u:p/a@ss@h/db", "postgresql://u:***@h/db"),
        ("postgresql+asyncpg://u:p#a@h/db and redis://r:x@c", "postgresql+asyncpg://u:***@h/db and redis://r:***@c"),
        ("sent Bearer abcdefgh12", "sent Bearer ***"),
        ("key whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw==", "key whsec_***"),
    ],
)
def test_secrets_are_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "unexpected token: ]",
        "unexpected token: else",
        "the secret of cookie: it is baked, next_page: 7",
        "max_tokens: 7, key: value, monkey=1",
        "PRIVATE: the keys of the api are under /secrets",
        "https://example.com:8080/a@b",
        "ada@example.com wrote: forgot my password",
        "at 12:30:00 job 0199a5b0-7c1e-7d3a-9a55-3f2f6d1c8e42",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "://a:",
        "postgresql://a:",
        "postgresql://a:b/",
        "password",
        "password: ",
        "password='",
        r"password\": \"",
        "token=",
        "token:",
        "'",
        "\\",
        "authorization: ",
        "cookie:",
        "cookie: a=b;",
        "api-key',",
    ],
)
def test_a_long_text_takes_no_long_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()

    assert redact(text)

    assert time.process_time() - began < 10  # of a time that grows with the square it would be hours


@pytest.mark.parametrize(
    ("context", "trace_id"),
    [
        ({"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "trace_id": "other"}, TRACE),
        ({"traceparent": "nonsense", "trace_id": "abc"}, "abc"),
        ({"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"}, None),
        ({"trace_id": "x" * 1_000}, "x" * 128),
        ({"trace_id": 7}, None),
        ({}, None),
    ],
)
def test_a_trace_is_found_in_the_context(context: dict[str, Any], trace_id: str | None) -> None:
    assert find_trace_id(context) == trace_id

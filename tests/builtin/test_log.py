"""The handler `log`."""

import logging

import pytest
from pydantic import ValidationError

from ostinato_worker.builtin.log import log_handler
from tests.builtin.attempt import JOB_ID, attempt


async def test_it_writes_one_line_with_the_facts_of_the_job(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    await attempt(log_handler(), {"message": "one\ntwo", "level": "warning", "fields": {"a": 1}})

    [record] = caplog.records
    assert record.getMessage() == '{"message":"one\\ntwo","fields":{"a":1}}'
    assert (record.levelname, record.job_id) == ("WARNING", str(JOB_ID))  # type: ignore[attr-defined]


async def test_an_empty_payload_is_a_health_check(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    await attempt(log_handler(), {})

    assert [record.getMessage() for record in caplog.records] == ['{"message":"alive"}']


def test_what_it_does_not_know_is_refused() -> None:
    with pytest.raises(ValidationError, match="msg"):
        log_handler().read('{"msg": "hello"}')

"""The log of a worker as a collector of a cluster reads it."""

import json
from pathlib import Path
from typing import Any

from tests.worker.process import drained, put, worker

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_every_line_is_json_and_says_whose_it_is(dsn: str, tmp_path: Path) -> None:
    job = put(dsn, "greet", {"name": "Ada"}, context={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"})

    done = drained(tmp_path, dsn, "--jobs", "shop", "--log-format", "json", "--log-level", "debug")

    lines: list[dict[str, Any]] = [json.loads(line) for line in done.err.splitlines()]
    (said,) = [line for line in lines if line["message"] == "None Ada"]
    facts = {name: said[name] for name in ("job_id", "job_type", "attempt", "trace_id", "level")}
    assert facts == {"job_id": job, "job_type": "greet", "attempt": 1, "trace_id": TRACE, "level": "info"}
    assert any(line["worker_id"] == said["worker_id"] for line in lines if "serves" in line["message"])


def test_no_secret_of_a_handler_is_in_it(dsn: str, tmp_path: Path) -> None:
    put(dsn, "leak")

    texts = [drained(tmp_path, dsn, "--jobs", "shop", "--log-format", kind).err for kind in ("json", "text")]

    assert "postgresql://me:***@db/shop" in texts[0]
    assert not any("hunter2" in text for text in texts)


def test_an_error_that_nobody_caught_is_json_too(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from contextlib import asynccontextmanager\n"
        "@asynccontextmanager\nasync def state():\n    raise RuntimeError('token=abc')\n    yield\n"
    )
    arguments = ["--jobs", "shop", "--state", "broken:state", "--log-format", "json"]
    with worker(tmp_path, dsn, *arguments) as process:
        done = process.wait()

    *_, last = [json.loads(line) for line in done.err.splitlines()]
    assert (done.code, last["level"]) == (1, "critical")
    assert last["message"] == "ended by an error that nobody caught: RuntimeError: token=***"
    assert "broken.py" in last["exception"]

"""What a handler in a process of its own may rely on."""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ostinato.failures import Code, JobError, PermanentError, Snooze, TransientError
from ostinato_worker.isolation import CannotStart, Isolator
from tests.worker import jobs
from tests.worker.attempts import ENQUEUED, Try


@pytest.mark.parametrize(
    ("handler", "payload", "output"),
    [
        (jobs.echo, {"to": "ada"}, {"to": "ada", "copies": 1, "attempt": 2, "namespace": "payments"}),
        (jobs.echo_sync, {"é": [None, 1.5, "\\"]}, {"é": [None, 1.5, "\\"]}),
        (jobs.EchoClass, {"a": 1}, [{"a": 1}, [1], {"trace": "t"}, 2, 5]),
    ],
)
async def test_functions_and_classes_give_their_output(
    isolator: Isolator, handler: Any, payload: Any, output: Any
) -> None:
    assert await Try(isolator, handler, payload).end() == output


async def test_the_handlers_own_errors_come_back_as_what_they_were(isolator: Isolator) -> None:
    with pytest.raises(TransientError, match="busy") as transient:
        await Try(isolator, jobs.raises, {"what": "transient"}).end()
    with pytest.raises(PermanentError, match="gone") as permanent:
        await Try(isolator, jobs.raises, {"what": "permanent"}).end()
    with pytest.raises(Snooze) as snooze:
        await Try(isolator, jobs.raises, {"what": "snooze"}).end()

    assert (transient.value.code, transient.value.retry_after) == ("UPSTREAM_5XX", timedelta(seconds=90))
    assert permanent.value.code == "NOT_FOUND"
    assert snooze.value.delay == timedelta(minutes=5)


async def test_a_handler_in_a_process_of_its_own_is_told_the_workers_time(isolator: Isolator) -> None:
    told = datetime.fromisoformat(await Try(isolator, jobs.tell_time).end())

    # The worker's is a day ahead there.
    assert timedelta(hours=23) < told - datetime.now(UTC) <= timedelta(hours=24)


@pytest.mark.parametrize(
    ("what", "message"),
    [("other", "KeyError: 'nobody'"), ("surrogate", "ValueError: \\ud800"), ("cancelled", "CancelledError: ")],
)
async def test_any_other_error_is_told_by_its_type_its_text_and_where_it_was(
    isolator: Isolator, what: str, message: str
) -> None:
    with pytest.raises(JobError) as raised:
        await Try(isolator, jobs.raises, {"what": what}).end()

    assert (str(raised.value), raised.value.code) == (message, Code.HANDLER_ERROR)
    assert "in raises" in raised.value.__notes__[0]


async def test_an_error_that_lacks_what_its_base_class_has_is_still_what_it_was(isolator: Isolator) -> None:
    with pytest.raises(PermanentError, match="gone") as permanent:
        await Try(isolator, jobs.raises_own, {"what": "permanent"}).end()
    with pytest.raises(TransientError) as transient:
        await Try(isolator, jobs.raises_own, {"what": "transient", "wait": "90s"}).end()
    with pytest.raises(TransientError) as never:
        await Try(isolator, jobs.raises_own, {"what": "transient", "wait": ["never"]}).end()
    with pytest.raises(JobError, match="OwnSnooze") as snooze:
        await Try(isolator, jobs.raises_own, {"what": "snooze"}).end()

    assert permanent.value.code == snooze.value.code == Code.HANDLER_ERROR
    assert (transient.value.code, transient.value.retry_after) == ("OWN", timedelta(seconds=90))
    assert (never.value.code, never.value.retry_after) == ("OWN", None)


@pytest.mark.parametrize("handler", [jobs.gives_up, jobs.gives_up_sync])
@pytest.mark.parametrize(("how", "message"), [("exit", "SystemExit: bye"), ("interrupt", "KeyboardInterrupt: ")])
async def test_what_would_end_a_program_is_an_error_of_the_handlers_like_any_other(
    isolator: Isolator, handler: Any, how: str, message: str
) -> None:
    with pytest.raises(JobError) as raised:
        await Try(isolator, handler, {"how": how}).end()

    assert (str(raised.value), raised.value.code) == (message, Code.HANDLER_ERROR)
    assert "in gives_up" in raised.value.__notes__[0]


async def test_a_payload_that_does_not_fit_and_an_output_that_is_no_json_will_never_work(isolator: Isolator) -> None:
    with pytest.raises(PermanentError, match="copies") as payload:
        await Try(isolator, jobs.echo, {"to": "ada", "copies": "many"}).end()
    with pytest.raises(PermanentError, match="it must be JSON") as output:
        await Try(isolator, jobs.odd_output).end()

    assert (payload.value.code, output.value.code) == (Code.PAYLOAD_INVALID, Code.OUTPUT_INVALID)


@pytest.mark.parametrize("handler", [jobs.asks, jobs.asks_sync])
async def test_the_worker_does_what_the_context_is_asked_for(isolator: Isolator, handler: Any) -> None:
    attempt = Try(isolator, handler)

    output = await attempt.end()

    options = {"namespace": "payments", "delay": "5m", "context": {"k": "v"}}
    assert output == [str(ENQUEUED), True]
    assert attempt.line.noted == [
        ("progress", {"done": 1}),
        ("emit", ["half"]),
        ("enqueue", "other", {"a": 1}, options),
    ]


async def test_what_the_worker_refuses_is_raised_where_it_was_asked_for(isolator: Isolator) -> None:
    assert await Try(isolator, jobs.asks_too_much).end() == "job_type is 'refused'; nobody serves it"


async def test_a_process_sees_nothing_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OSTINATO_DSN", "PGPASSWORD", "TOKEN", "WANTED", "PYTHONHASHSEED"):
        monkeypatch.setenv(name, "1")
    isolator = Isolator(["tests.worker.jobs"], keep_env=["WANTED"])
    await isolator.start()
    inheritable = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(inheritable, True)

    seen = await Try(isolator, jobs.surroundings).end()

    os.close(inheritable)
    await isolator.close()
    kept = {"PATH", "HOME", "LANG", "TZ", "WANTED", "PYTHONHASHSEED"}
    assert {name for name in seen["environment"] if not name.startswith("PYTHON")} <= kept | {"LC_CTYPE"}
    assert seen["environment"].keys() >= {"WANTED", "PYTHONHASHSEED"}
    assert seen["session"] == [seen["session"][0]] * 3
    assert seen["main thread"]
    descriptors = seen["descriptors"]
    assert descriptors.pop("0") == os.devnull
    assert {descriptors.pop(number) for number in seen["module's"]} == {os.devnull}
    kinds = sorted(leads_to.partition(":")[0] for number, leads_to in descriptors.items() if number not in "12")
    # Its line, and the event loop that listens to it, which has a pair of sockets of its own.
    assert kinds == ["anon_inode", "socket", "socket", "socket", "the listing itself"]


@pytest.mark.parametrize(
    ("how", "code", "message"),
    [
        ("SIGKILL", Code.PROCESS_DIED, "killed by signal 9 (SIGKILL)"),
        ("SIGSEGV", Code.PROCESS_DIED, "killed by signal 11 (SIGSEGV)"),
        ("os._exit", Code.PROCESS_DIED, "exited with code 0 without an answer"),
    ],
)
async def test_a_process_that_dies_is_a_transient_error_that_says_how(
    isolator: Isolator, how: str, code: Code, message: str
) -> None:
    with pytest.raises(TransientError) as died:
        await Try(isolator, jobs.dies, {"how": how}).end()

    assert (died.value.code, str(died.value)) == (code, message)


@pytest.mark.parametrize("handler", [jobs.hungry, jobs.hungry_async])
async def test_who_needs_more_than_its_memory_is_told_so(isolator: Isolator, handler: Any) -> None:
    with pytest.raises(TransientError, match="67,108,864 bytes") as hungry:
        await Try(isolator, handler).end()

    assert hungry.value.code == Code.OUT_OF_MEMORY
    assert await Try(isolator, jobs.modest).end() == 32 * 2**20


@pytest.mark.parametrize(("deaf", "signal"), [(False, "SIGXCPU"), (True, "SIGKILL")])
async def test_who_needs_more_than_its_cpu_time_is_told_so(isolator: Isolator, deaf: bool, signal: str) -> None:
    with pytest.raises(TransientError, match=rf"more than its CPU time of 1s, killed by signal \d+ \({signal}") as busy:
        await Try(isolator, jobs.busy, {"deaf": deaf}).end()

    assert busy.value.code == Code.TIMEOUT


async def test_a_module_that_cannot_be_imported_is_named() -> None:
    isolator = Isolator(["tests.worker.jobs", "tests.worker.broken"])

    with pytest.raises(CannotStart, match=r"module tests\.worker\.broken cannot be imported: ZeroDivisionError"):
        await isolator.start()
    with pytest.raises(TransientError, match=r"tests\.worker\.broken"):
        await Try(isolator, jobs.echo, {"to": "ada"}).end()

    await isolator.close()


async def test_a_package_is_looked_through_with_all_that_is_below_it() -> None:
    isolator = Isolator(["tests.worker.package"])
    await isolator.start()
    from tests.worker.package.below.deep import deep

    assert await Try(isolator, deep).end() == "deep"

    await isolator.close()

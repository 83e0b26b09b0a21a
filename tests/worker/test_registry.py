"""Which handlers a worker serves."""

from datetime import timedelta
from pathlib import Path

import pytest

from ostinato import InvalidArgument, job
from ostinato.store import JobType, Limit
from ostinato_worker.isolation import Isolator
from ostinato_worker.registry import Jobs, Registry, installed
from tests.worker import wiring
from tests.worker.attempts import Try
from tests.worker.registered import shallow


def test_a_package_gives_all_that_is_in_it_however_deep_and_each_once() -> None:
    assert sorted(Registry.load("tests.worker.registered").served) == ["deep@3", "shallow"]


def test_modules_and_handlers_may_be_given_together() -> None:
    @job("other")
    async def other() -> None: ...

    registry = Registry.load(["tests.worker.registered.deep", other])

    assert sorted(registry.served) == ["deep@3", "other", "shallow"]
    assert registry.find("shallow", 1) is shallow
    assert registry.find("shallow", 2) is None


def test_two_handlers_of_one_type_and_version_are_refused_by_their_places() -> None:
    @job("shallow")
    async def again() -> None: ...

    rule = r"tests\.worker\.registered\.shallow and .*again both handle it: rename one, or give it another version"
    with pytest.raises(InvalidArgument, match=rule):
        Registry.load([shallow, again])


@pytest.mark.parametrize(
    ("jobs", "rule"),
    [
        ("no_such_module", "there is no module 'no_such_module'"),
        ("tests.worker.no_such_module", "there is no module 'tests.worker.no_such_module'"),
        ("tests.worker.fleet", "it must name a module that holds a handler"),
        ([], "it must name a module that holds a handler"),
        ("tests.worker.no_such_module:both", "there is no module 'tests.worker.no_such_module'"),
        ("tests.worker.wiring:neither", "module 'tests.worker.wiring' has no attribute 'neither'"),
        ("tests.worker.wiring:library", "it must be a handler, made by @job, or a list of them"),
    ],
)
def test_what_holds_no_handler_is_an_error_that_says_so(jobs: str | list[str], rule: str) -> None:
    with pytest.raises(InvalidArgument, match=rule):
        Registry.load(jobs)


def test_a_module_that_misses_another_one_says_which() -> None:
    with pytest.raises(InvalidArgument, match=r"it cannot be imported: .* named .no_such_dependency"):
        Registry.load("tests.worker.lacking")


def test_what_a_worker_says_of_a_type_has_its_own_options_over_the_defaults() -> None:
    types = {each.name: each for each in Registry.load("tests.worker.registered").job_types(5, timedelta(minutes=1))}

    assert types["shallow"] == JobType(name="shallow", max_attempts=5, timeout=timedelta(minutes=1))
    assert (types["deep"].version, types["deep"].queue) == (3, "mail")
    assert types["deep"].limit == Limit(max_running=2, rate=10, burst=10)
    assert types["deep"].payload_schema is not None


def test_handlers_may_be_named_in_their_module_which_may_hold_others() -> None:
    assert Registry.load("tests.worker.wiring:compute").served == ["compute"]
    assert Registry.load("tests.worker.wiring:both").served == ["compute", "compute_too"]


def test_an_entry_point_may_name_a_module_or_what_is_in_it_and_extras_are_no_part_of_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "shop-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1\n")
    lines = ["a = tests.worker.registered", "b = tests.worker.wiring:both [worker]", "c = tests.worker.jobs [worker]"]
    (info / "entry_points.txt").write_text("\n".join(["[ostinato.jobs]", *lines]))
    monkeypatch.syspath_prepend(tmp_path)

    assert installed() == ["tests.worker.registered", "tests.worker.wiring:both", "tests.worker.jobs"]
    assert {"shallow", "compute", "compute_too", "echo"} <= set(Registry.load(None).served)


@pytest.mark.parametrize("jobs", ["tests.worker.wiring", "tests.worker.wiring:both", wiring.compute])
async def test_an_isolated_handler_is_found_where_it_was_made_of_another_modules_function(jobs: Jobs) -> None:
    registry = Registry.load(jobs)

    isolator = Isolator(registry.isolated)

    try:
        for handler in registry:
            assert await Try(isolator, handler).end() == 42
    finally:
        await isolator.close()


def test_an_isolated_handler_that_a_process_of_its_own_would_not_find_is_refused() -> None:
    @job("local", isolation="process")
    async def local() -> None: ...

    for handler in (local, wiring.compute_too):  # its place is known only from its module's name
        with pytest.raises(InvalidArgument, match=r"finds only what a module holds by a name: .* name that in jobs"):
            _ = Registry.load(handler).isolated

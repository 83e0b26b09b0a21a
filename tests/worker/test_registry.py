"""Which handlers a worker serves."""

from datetime import timedelta

import pytest

from ostinato import InvalidArgument, job
from ostinato.store import JobType, Limit
from ostinato_worker.registry import Registry
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

"""Who imports `ostinato.testing`, and what that brings along."""

import subprocess
import sys


def run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_a_service_does_not_import_it_by_accident() -> None:
    done = run("import sys, ostinato, ostinato_worker, ostinato_cli.main; assert 'ostinato.testing' not in sys.modules")

    assert done.returncode == 0, done.stderr


def test_a_service_that_only_enqueues_needs_nothing_of_the_worker() -> None:
    done = run(
        "import sys\n"
        "from ostinato.testing import assert_enqueued, advance, Clock\n"
        "assert not [name for name in sys.modules if name.startswith('ostinato_worker') or name == 'pytest']"
    )

    assert done.returncode == 0, done.stderr


def test_without_the_workers_packages_the_error_says_what_to_install() -> None:
    done = run("import sys\nsys.modules['h11'] = None\nfrom ostinato.testing import run_job")

    assert "ImportError: run_job needs the worker's packages: pip install 'ostinato[worker]'" in done.stderr


def test_what_is_not_there_is_an_attribute_error() -> None:
    done = run("import ostinato.testing; ostinato.testing.run_jobs")

    assert "AttributeError: module 'ostinato.testing' has no attribute 'run_jobs'" in done.stderr

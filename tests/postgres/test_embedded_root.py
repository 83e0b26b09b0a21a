"""The embedded server when the program that starts it is root's: PostgreSQL itself never is."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ostinato.embedded import EmbeddedPostgres, default_data_dir, wheel_bin_dirs
from ostinato.errors import EmbeddedPostgresError
from tests.postgres.programs import FAST, PACKAGES, PYTHONS, Program, gone_within, query

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture(scope="module")
def data_dir(folder: Path) -> Path:
    """One directory for all tests, as initdb takes a second."""
    with EmbeddedPostgres(folder / "shared", settings=FAST):
        return folder / "shared"


@as_root
def test_as_root_the_server_is_not_root(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, settings=FAST) as server:
        assert Path(f"/proc/{server.pid}").stat().st_uid == data_dir.stat().st_uid != 0


@as_root
def test_as_root_a_directory_whose_parents_the_server_cannot_enter_is_refused_and_stays_so(folder: Path) -> None:
    (folder / "locked" / "project").mkdir(parents=True)
    (folder / "locked").chmod(0o700)

    with pytest.raises(EmbeddedPostgresError, match=f"cannot enter {folder}/locked: .*chmod o.x {folder}/locked"):
        EmbeddedPostgres(folder / "locked" / "project" / "postgres", settings=FAST).start()

    assert (folder / "locked").stat().st_mode & 0o777 == 0o700


@as_root
def test_as_root_binaries_that_only_root_can_read_are_copied_once(data_dir: Path, folder: Path) -> None:
    wheel = wheel_bin_dirs()[18].parents[1]
    private = folder / "private"
    private.mkdir(mode=0o700)
    ignore = shutil.ignore_patterns("include", "pginstall")
    shutil.copytree(wheel, private / wheel.name, ignore=ignore)
    shutil.copytree(wheel.with_name(f"{wheel.name}.libs"), private / f"{wheel.name}.libs")
    bin_dir = private / wheel.name / "pginstall18" / "bin"
    homes = set()

    for _ in range(2):
        with EmbeddedPostgres(data_dir, bin_dir=bin_dir, settings=FAST) as server:
            homes.add(Path(query(server.dsn, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")))

    (copy,) = homes
    assert not copy.is_relative_to(folder)
    for path in (copy / "postgres", copy, *copy.parents[:4]):
        assert (path.stat().st_uid, path.stat().st_mode & 0o022) == (0, 0), f"{path} can be written by others"
    assert private.stat().st_mode & 0o777 == 0o700


@as_root
def test_as_root_the_default_directory_is_outside_the_project_and_named_after_it(folder: Path) -> None:
    one, two = (default_data_dir(folder / parent / "my shop") for parent in ("a", "b"))

    assert one.parent.name.startswith("my-shop-")
    assert one.parent != two.parent
    assert not one.is_relative_to(folder)


@as_root
def test_an_ordinary_user_runs_the_server_inside_the_project(folder: Path) -> None:
    project = folder / "project"
    project.mkdir()
    shutil.chown(project, "nobody")
    nobody: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    code = f"import pathlib, ostinato.embedded as e; print(e.default_data_dir(pathlib.Path('{project}')))"
    python, place = run_by_any([[python, "-c", code] for python in PYTHONS], env={"PYTHONPATH": PACKAGES}, **nobody)

    with Program(Path(place), python=python, **nobody) as program:
        assert "error" not in program.said, program.said
        assert query(program.said["dsn"], "SHOW data_directory") == str(project / ".ostinato" / "postgres")
        with gone_within(program.said["pid"], 5):
            program.process.kill()


def run_by_any(commands: list[list[str]], **options: Any) -> tuple[str, str]:
    """The first program that can be run, and what it said."""
    reasons = []
    for command in commands:
        try:
            done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True, **options)
        except (OSError, subprocess.CalledProcessError) as error:
            reasons.append(f"{command[0]}: {error} {getattr(error, 'stderr', '')}")
        else:
            return command[0], done.stdout.strip()
    pytest.skip(f"the user can run none of the interpreters: {'; '.join(reasons)}")

"""What the pages tell people to type works."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from ostinato import enqueue
from ostinato.migrations import CHECKED_OUT
from ostinato_cli.pages import PAGES
from tests.cli.command import environment
from tests.postgres.conftest import on

PROJECT = CHECKED_OUT.parent
README = (PROJECT / "README.md").read_text()
TESTING = (PROJECT / "docs" / "testing.md").read_text()
TIMING = (PROJECT / "docs" / "timing.md").read_text()
EXAMPLE_DSN = "postgresql://me@localhost/shop"


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def programs(folder: Path, page: str = README) -> list[str]:
    """Those that say which file they are become it; the others are given back."""
    unnamed = []
    for program in blocks("(?:python|toml)", page):
        if named := re.match(r"# (\S+\.(?:py|toml))\n", program):
            (folder / named[1]).parent.mkdir(exist_ok=True)
            (folder / named[1]).write_text(program)
        else:
            unnamed.append(program)
    return unnamed


def typed(commands: list[str], folder: Path, dsn: str = EXAMPLE_DSN) -> "subprocess.CompletedProcess[str]":
    """As a person would, in that folder, into a shell that finds what is installed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = "set -euo pipefail\n" + "\n".join(commands).replace(EXAMPLE_DSN, f"'{dsn}'")
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment(PATH=path), capture_output=True, text=True
    )


def test_the_five_minutes_of_the_readme_work_word_for_word(empty_dsn: str, tmp_path: Path) -> None:
    (program,) = programs(tmp_path)

    shell = typed(blocks("sh"), tmp_path, empty_dsn)
    python = subprocess.run([sys.executable, "-c", program], env=environment(empty_dsn), capture_output=True, text=True)
    (statement,) = blocks("sql")
    called = on(empty_dsn, lambda conn: conn.fetchrow(statement))

    assert shell.returncode == 0, shell.stdout + shell.stderr
    assert all(" INFO " in line for line in shell.stderr.splitlines()), shell.stderr
    assert "an invoice for order 7" in shell.stderr
    assert "send_email" in shell.stdout
    assert shell.stdout.endswith("completed 1\n")
    assert (python.returncode, python.stderr) == (0, "")
    assert python.stdout.strip().endswith("True")
    assert called["created"]
    states = on(empty_dsn, lambda conn: conn.fetch("select job_type, state from ostinato.all_jobs order by id"))
    assert [tuple(row) for row in states] == [
        ("send_email", "cancelled"),
        ("send_invoice", "completed"),
        ("send_invoice", "pending"),
        ("pack_item", "pending"),
        ("pack_item", "pending"),
        ("pack_item", "pending"),
        ("send_invoice", "pending"),
    ]


async def test_the_worker_inside_a_service_works_word_for_word(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without FastAPI itself, which does no more than enter the lifespan."""
    programs(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("OSTINATO_DSN", dsn)
    app = (tmp_path / "shop" / "app.py").read_text()
    kept = [line for line in app.splitlines() if "import FastAPI" not in line and "= FastAPI" not in line]
    names: dict[str, Any] = {"FastAPI": object}
    exec("\n".join(kept), names)

    async with names["lifespan"](None):
        conn = await asyncpg.connect(dsn)
        await enqueue(conn, "send_invoice", {"order": 8})
        while not await conn.fetchval("select count(*) from ostinato.job_history where state = 'completed'"):
            await asyncio.sleep(0.02)
        await conn.close()


def test_the_project_of_the_page_on_testing_passes_its_tests_word_for_word(tmp_path: Path) -> None:
    """On an embedded server, as nobody gives another one."""
    assert programs(tmp_path, TESTING) == []

    shell = typed(blocks("sh", TESTING), tmp_path)

    assert len(re.findall(r"^```\w", TESTING, re.MULTILINE)) == len(blocks(r"\w+", TESTING)) == 7
    tests = len(re.findall(r"^(?:async )?def test_", TESTING, re.MULTILINE))
    assert f"{tests} passed" in shell.stdout, shell.stdout + shell.stderr


def test_the_page_on_timing_shows_what_its_commands_print(tmp_path: Path) -> None:
    printed = [[typed([line], tmp_path) for line in block.splitlines()] for block in blocks("sh", TIMING)]

    assert all((shell.returncode, shell.stderr) == (0, "") for shells in printed for shell in shells)
    assert [shells[0].stdout for shells in printed] == blocks("text", TIMING)
    [(command, error)] = re.findall(r"^    \$ (.+)\n    (Error: .+)$", TIMING, re.MULTILINE)
    shell = typed([command], tmp_path)
    assert (shell.returncode, shell.stderr) == (2, error + "\n")


def test_every_make_target_that_a_page_names_is_there() -> None:
    pages = [README, (PROJECT / "CONTRIBUTING.md").read_text(), (PROJECT / "bench" / "README.md").read_text()]
    named = {target for page in pages for target in re.findall(r"(?:^ {4}|`)make ([a-z]+)", page, re.MULTILINE)}

    assert {"run", "test", "check", "bench", "verify"} <= named
    for target in named:
        subprocess.run(["make", "-n", target], cwd=PROJECT, check=True, capture_output=True)


def test_every_link_of_a_page_leads_somewhere() -> None:
    for page in (*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), PROJECT / "bench" / "README.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_file_that_the_architecture_names_is_there() -> None:
    table = (PROJECT / "docs" / "architecture.md").read_text().partition("## Where is what")[2]

    for name in re.findall(r"`((?:core|cli|docs|migrations|worker)/[\w/.-]+)`", table):
        assert (PROJECT / name).exists(), name


def test_generated_pages_are_what_the_code_says() -> None:
    for path, page in PAGES.items():
        assert path.read_text() == page()

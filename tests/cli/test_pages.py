"""What the pages tell people to type works."""

import os
import re
import subprocess
import sys
from pathlib import Path

from ostinato.migrations import CHECKED_OUT
from ostinato_cli.pages import PAGES
from tests.cli.command import environment
from tests.postgres.conftest import on

PROJECT = CHECKED_OUT.parent
README = (PROJECT / "README.md").read_text()
EXAMPLE_DSN = "postgresql://me@localhost/shop"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_five_minutes_of_the_readme_work_word_for_word(empty_dsn: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = "set -euo pipefail\n" + "\n".join(blocks("sh")).replace(EXAMPLE_DSN, f"'{empty_dsn}'")

    shell = subprocess.run(["bash", "-c", script], env=environment(PATH=path), capture_output=True, text=True)
    (program,) = blocks("python")
    python = subprocess.run([sys.executable, "-c", program], env=environment(empty_dsn), capture_output=True, text=True)
    (statement,) = blocks("sql")
    called = on(empty_dsn, lambda conn: conn.fetchrow(statement))

    assert (shell.returncode, shell.stderr) == (0, ""), shell.stdout
    assert "send_email" in shell.stdout
    assert (python.returncode, python.stderr) == (0, "")
    assert python.stdout.strip().endswith("True")
    assert called["created"]
    states = on(empty_dsn, lambda conn: conn.fetch("select job_type, state from ostinato.all_jobs order by id"))
    assert [tuple(row) for row in states] == [
        ("send_email", "cancelled"),
        ("send_invoice", "pending"),
        ("pack_item", "pending"),
        ("pack_item", "pending"),
        ("pack_item", "pending"),
        ("send_invoice", "pending"),
    ]


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

    for name in re.findall(r"`((?:core|cli|docs|migrations)/[\w/.-]+)`", table):
        assert (PROJECT / name).exists(), name


def test_generated_pages_are_what_the_code_says() -> None:
    for path, page in PAGES.items():
        assert path.read_text() == page()

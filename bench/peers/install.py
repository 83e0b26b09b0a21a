"""Puts the peers where they can run: a venv, a node project and a compiled Go program, all in the cache.

By the ordinary clients (pip, npm, go) with pinned versions; whatever they are configured with holds here too.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.peers.cache import environment

ADAPTERS = Path(__file__).parent / "adapters"


class NotInstalled(Exception):
    """A peer cannot run here; the others can."""


def python(cache: Path) -> Path:
    """The interpreter of the venv with the peers in Python."""
    venv, pinned = cache / "venv", ADAPTERS / "requirements.txt"

    def make() -> None:
        _run(sys.executable, "-m", "venv", "--clear", venv)
        _run(venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "-r", pinned)

    _once(venv, [pinned], make)
    return venv / "bin" / "python"


def node(cache: Path) -> Path:
    """A node of its own beside the peers in JavaScript: the system's may be too old for them."""
    project, manifests = cache / "node", [ADAPTERS / "package.json", ADAPTERS / "package-lock.json"]

    def make() -> None:
        project.mkdir(exist_ok=True)
        for manifest in manifests:
            shutil.copy(manifest, project)
        _run("npm", "ci", "--prefix", project, "--no-audit", "--no-fund", "--loglevel", "error")

    _once(project, manifests, make)
    found = sorted(project.glob("node_modules/node-linux-*/bin/node"))
    if not found:
        raise NotInstalled("there is no node for this machine among package.json's")
    return found[0]


def river(cache: Path) -> Path:
    """The program that `go build` makes of the adapter."""
    folder, source = cache / "river", ADAPTERS / "river"

    def make() -> None:
        folder.mkdir(exist_ok=True)
        _run("go", "build", "-C", source, "-o", folder / "river", ".")

    _once(folder, sorted(source.iterdir()), make)
    return folder / "river"


def _once(folder: Path, manifests: list[Path], make: Callable[[], None]) -> None:
    """Make it, unless it was made of these very files."""
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in manifests)).hexdigest()
    stamp = folder / ".made-of"
    if not stamp.exists() or stamp.read_text() != digest:
        stamp.unlink(missing_ok=True)
        make()
        stamp.write_text(digest)


def _run(*command: str | Path) -> None:
    try:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment())
    except FileNotFoundError:
        raise NotInstalled(f"it needs `{command[0]}` on the PATH") from None
    except subprocess.CalledProcessError as error:
        raise NotInstalled(f"`{' '.join(map(str, command))}` ended with {error.returncode}") from None

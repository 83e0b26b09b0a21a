"""Where an embedded server keeps its things."""

import contextlib
import hashlib
import os
import re
import stat
from pathlib import Path

from ostinato.errors import EmbeddedPostgresError


def default_data_dir(project: Path) -> Path:
    """Inside the project; as root outside, since the server's user may be unable to enter the project's parents."""
    project = project.resolve()
    if os.geteuid() != 0:
        return project / ".ostinato" / "postgres"
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", project.name) or "root"
    digest = hashlib.sha256(bytes(project)).hexdigest()[:8]
    return root_folder("lib") / f"{name}-{digest}" / "postgres"


def root_folder(kind: str) -> Path:
    """Root's own folder in /var, or in /tmp where /var is read-only; nobody else may write what root runs later."""
    for folder in (Path("/var", kind, "ostinato"), Path("/tmp", f"ostinato-{kind}")):
        with contextlib.suppress(OSError):
            make_folder(folder)
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == 0 and not status.st_mode & 0o022:
                return folder
    raise EmbeddedPostgresError(
        f"neither /var/{kind}/ostinato nor /tmp/ostinato-{kind} is a folder only root can write"
    )


def make_folder(folder: Path) -> None:
    for path in reversed([folder, *folder.parents]):
        if not path.exists():
            # Two programs may both come here, and only the one that made the folder may chmod it.
            with contextlib.suppress(FileExistsError):
                path.mkdir()
                if os.geteuid() == 0:
                    path.chmod(0o755)  # whatever root's umask: the server's user has to pass

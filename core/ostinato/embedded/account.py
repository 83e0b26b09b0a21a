"""Whom the server runs as. No system user is made, and nobody's folders are opened to others."""

import contextlib
import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ostinato.errors import EmbeddedPostgresError

ENTER_SCRIPT = 'for folder; do cd -- "$folder" || { echo "$folder"; exit; }; done'


@dataclass(frozen=True)
class Account:
    """The operating system's user that the server runs as: ourselves, but never root, which PostgreSQL refuses."""

    uid: int
    gid: int

    @classmethod
    def for_server(cls, data_dir: Path) -> Self:
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid())
        # The owner first: a `postgres` user who appears later must not lock us out of what `nobody` made.
        if data_dir.exists() and (made := data_dir.stat()).st_uid != 0:
            return cls(made.st_uid, made.st_gid)
        for name in ("postgres", "nobody"):
            with contextlib.suppress(KeyError):
                user = pwd.getpwnam(name)
                return cls(user.pw_uid, user.pw_gid)
        raise EmbeddedPostgresError("PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody`")

    def options(self, **environment: str) -> dict[str, Any]:
        """For subprocess. The directory is /, as this user may be unable to enter the one we are in."""
        switch = {"user": self.uid, "group": self.gid, "extra_groups": []} if os.geteuid() == 0 else {}
        return {"cwd": "/", "env": {"PATH": "/usr/bin:/bin", "LC_ALL": "C", **environment}, **switch}

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **self.options())

    def spawn(self, command: list[str], output: int, **environment: str) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C in the terminal is for our program, which then stops the server in order.
        options = {"stdout": output, "stderr": output, "start_new_session": True, **self.options(**environment)}
        return subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, **options)

    def must_enter(self, folder: Path) -> None:
        blocked = self.run("/bin/sh", "-c", ENTER_SCRIPT, "sh", *reversed(folder.parents), folder).stdout.strip()
        if blocked:
            raise EmbeddedPostgresError(
                f"the server runs as uid {self.uid}, who cannot enter {blocked}: choose a data directory "
                f"outside of it (default_data_dir() does), or let others pass through it: chmod o+x {blocked}"
            )

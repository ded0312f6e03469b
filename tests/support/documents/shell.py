"""Runs the shell commands of a page as a reader does who has `jobgate` on the PATH."""

import os
import subprocess
import sys
from pathlib import Path


def shell_environment(server: str, home: Path) -> dict[str, str]:
    """Return the environment of commands that use the gateway at this URL, and keep their files in `home`."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith("JOBGATE_")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"JOBGATE_SERVER": server, "JOBGATE_CONFIG": str(home / "config.yaml")}
    return {**mine, **own, "PATH": path, "COLUMNS": "120", "PYTHONUTF8": "1"}


def run_script(
    script: str, environment: dict[str, str], *, cwd: Path, timeout: float
) -> "subprocess.CompletedProcess[str]":
    """Run the script in the directory; an unset variable ends it."""
    return subprocess.run(
        ["bash", "-u", "-c", script],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )

"""Runs promtool, the checker of Prometheus."""

import shutil
import subprocess
from pathlib import Path

import pytest


def promtool(*arguments: str, cwd: Path | None = None, stdin: str = "") -> None:
    """Run `promtool` of PATH, which must find no fault. The test is skipped if there is none."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("there is no promtool: put the one of a release of Prometheus on PATH")
    ran = subprocess.run([program, *arguments], cwd=cwd, input=stdin, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr

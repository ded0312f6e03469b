"""Formats generated modules as `make format` does, so that the text can be compared with the committed file."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SORTED = ("check", "--quiet", "--fix", "--select", "I")
FORMATTED = ("format", "--quiet")


def format_module(text: str, path: Path) -> str:
    """Return the text of a module with sorted imports, formatted by ruff."""
    for arguments in (SORTED, FORMATTED):
        command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(path), "-"]
        ran = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=True)
        text = ran.stdout
    return text

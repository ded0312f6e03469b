"""Runs the commands of a page of docs/, so that they stay correct."""

import os
import re
import subprocess
import sys
from pathlib import Path

from app.embedded_postgres.binaries import PostgresBinaries

DOCS = Path(__file__).parents[2] / "docs"


def commands_of(page: str, heading: str) -> list[str]:
    """Return the blocks of shell commands under a heading, up to the next heading."""
    text = (DOCS / page).read_text()
    (section,) = re.findall(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE)
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert blocks, f"{page} has no commands under {heading}"
    return blocks


def run_commands(page: str, heading: str, directory: Path, **environment: str) -> str:
    """Run the commands under a heading in a directory, with the programs of jobgate and PostgreSQL; return the output.

    They see no other settings of jobgate than those that are given.
    """
    programs = (str(Path(sys.executable).parent), str(PostgresBinaries.from_wheel().directory))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("JOBGATE_", "PG"))}
    given = inherited | {"PATH": os.pathsep.join([*programs, os.environ["PATH"]]), "HOME": str(directory)} | environment
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "".join(commands_of(page, heading))],
        cwd=directory,
        env=given,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, f"{page}, {heading}: {ran.stdout}{ran.stderr}"
    return ran.stdout

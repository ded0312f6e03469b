"""The help of the commands, and their completion in a shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobgate.cli.commands import app
from tests.client.scripted import RunCommand

COMMANDS = [command.name for command in app.registered_commands if command.name]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_on_a_screen(run: RunCommand, command: str) -> None:
    result, _ = run([command, "--help"])
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) <= 45
    assert "Example" in result.stdout


def test_the_list_of_commands_fits_on_a_screen(run: RunCommand) -> None:
    result, _ = run(["--help"])
    assert len(result.stdout.splitlines()) <= 45


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_asks_jobgate(run: RunCommand, shell: str) -> None:
    result, script = run(["completion", shell])
    assert f"_JOBGATE_COMPLETE=complete_{shell}" in result.stdout
    assert script.requests == []


def test_a_shell_completes_commands(tmp_path: Path) -> None:
    asked = {"_JOBGATE_COMPLETE": "complete_bash", "COMP_WORDS": "jobgate expl", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "jobgate"]
    ran = subprocess.run(
        command, env={**os.environ, **asked}, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.stdout.split() == ["explain"], ran.stderr

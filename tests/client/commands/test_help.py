"""The help of the commands."""

import pytest

from jobgate.cli.command import app
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

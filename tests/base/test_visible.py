"""What a terminal would interpret is shown as text by the commands of the server too."""

import sys

import pytest

from app.base.visible import visible_line, visible_lines
from app.domain.errors import Conflict
from app.running.execution import exit_status
from jobgate.cli.rendering import visible as of_client

HOSTILE = "pods a\x1b]0;title\x07\x1b[2J\x9b31m\u202eb\u200f\u061c\ud800\x7f\x08 is forbidden"


def test_the_server_and_its_client_escape_the_same_characters() -> None:
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    assert [c for c in every if visible_line(c) != c] == [c for c in every if of_client.visible_line(c) != c]


def test_lines_stay_lines() -> None:
    assert visible_lines("a\n\x1b[2Jb\n") == "a\n\\x1b[2Jb\n"


def test_an_error_for_operators_controls_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """The message of a webhook or of the API server may quote what a tenant has written."""

    def refused() -> int:
        raise Conflict(HOSTILE)

    assert exit_status(refused) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("jobgate: pods a\\x1b]0;title")
    assert printed.endswith("is forbidden\n")
    assert printed[:-1].isprintable()

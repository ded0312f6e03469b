"""The screen of a terminal, and the parts of a session."""

import pytest

from tests.docs.session import Step, documented, observed, script
from tests.support.machine.terminals import Screen


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("one\r\ntwo\r\n", "one\ntwo"),
        ("\x1b[1;31mred\x1b[0m\r\n", "red"),
        ("old line\r\x1b[2Knew\r\n", "new"),
        ("a\r\nbb\r\n\r\x1b[1A\x1b[2K\x1b[1A\x1b[2Kc\r\n", "c"),
        ("abc\rX", "Xbc"),
        ("abc\x1b[K\r\x1b[K", ""),
        ("\x1b[?25la  \x1b[?25h", "a"),
    ],
)
def test_the_screen_shows_what_remains(written: str, shown: str) -> None:
    screen = Screen()
    screen.write(written)
    assert screen.text() == shown


def test_a_session_is_split_into_its_commands() -> None:
    steps = [Step("one", ""), Step("cat <<E\nx\nE", "")]
    assert [line for line in script(steps).splitlines() if "@@" not in line] == ["one", "cat <<E", "x", "E"]
    assert [step.output for step in observed(steps, "@@0@@\na\nb\n@@1@@")] == ["a\nb", ""]


def test_times_do_not_count() -> None:
    assert Step("x", "train  Failed  12s  x").comparable == Step("x", "train  Failed  3m4s    x").comparable
    assert Step("x", "12 running").comparable != Step("x", "13 running").comparable


def test_the_session_of_the_page_submits_a_job_that_fails_and_one_that_succeeds() -> None:
    steps = documented()
    watched = [step.output for step in steps if "--watch" in step.command]
    assert ["Failed" in watched[0], "Succeeded" in watched[1]] == [True, True]
    assert [step.output for step in steps if step.command.startswith("echo")] == ["exit status 1", "exit status 0"]

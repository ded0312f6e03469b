"""The exit status of the work of a command, and what it reports."""

import asyncio

import pytest
import uvloop

from app.connections import NotConfigured
from app.running import exit_status, run_loop


def interrupted() -> int:
    raise KeyboardInterrupt


def not_configured() -> int:
    raise ExceptionGroup("of a task group", [NotConfigured("no database")])


def test_an_interrupt_has_the_status_of_a_shell_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(interrupted) == 130
    assert capsys.readouterr() == ("", "")


def test_an_error_of_the_configuration_is_reported_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(not_configured) == 2
    assert capsys.readouterr() == ("", "jobgate: no database\n")


def test_the_server_uses_the_event_loop_of_uvloop() -> None:
    async def type_of_loop() -> type[asyncio.AbstractEventLoop]:
        return type(asyncio.get_running_loop())

    assert issubclass(run_loop(type_of_loop()), uvloop.Loop)

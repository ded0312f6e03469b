"""The exit status of the work of a command, and what it reports."""

import asyncio
import json
import subprocess
import sys

import pytest
import uvloop

from app.running.connections import NotConfigured
from app.running.execution import exit_status, run_loop


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


@pytest.mark.parametrize(("level", "is_logged"), [("info", False), ("debug", True)])
def test_the_traceback_of_a_reported_error_is_logged_for_debugging(level: str, *, is_logged: bool) -> None:
    """A new process, because logging is configured once for each."""
    code = f"""
from app.running.execution import exit_status
from app.telemetry.logs import configure_logging
from tests.running.test_execution import not_configured
configure_logging("json", "{level}")
raise SystemExit(exit_status(not_configured))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    reported, *debugged = [json.loads(line) for line in ran.stderr.splitlines()]
    assert (ran.returncode, reported["level"], reported["error"]) == (2, "critical", "no database")
    assert [(line["level"], line["event"]) for line in debugged] == [("debug", "process.traceback")] * is_logged
    assert all("in not_configured" in line["exception"] for line in debugged)


def test_the_server_uses_the_event_loop_of_uvloop() -> None:
    async def type_of_loop() -> type[asyncio.AbstractEventLoop]:
        return type(asyncio.get_running_loop())

    assert issubclass(run_loop(type_of_loop()), uvloop.Loop)

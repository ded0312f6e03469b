"""Figures that a suite has proven, shown once at the end of the run, from whichever worker they came."""

from collections.abc import Callable

import pytest

PROOF = "proof"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "crash: kills, freezes and deceives gateways that are processes of their own")


@pytest.fixture
def prove(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Call it with the line to be shown."""

    def prove(line: str) -> None:
        record_property(PROOF, line)

    return prove


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.getreports("passed")
    lines = [value for report in reports for name, value in report.user_properties if name == PROOF]
    if lines:
        terminalreporter.section("proven")
        for line in lines:
            terminalreporter.line(str(line))

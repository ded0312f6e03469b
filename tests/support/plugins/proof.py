"""Shows figures of suites once, at the end of the run, also those of xdist workers."""

from collections.abc import Callable

import pytest

PROOF = "proof"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "crash: kills, freezes and deceives gateways that are processes of their own")


@pytest.fixture
def prove(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """A function that records a line to show."""

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

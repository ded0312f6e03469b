"""Support for `--reruns 1` of CI: names the tests that needed a second run, and never repeats crash tests.

A lost or duplicated job may appear only once in many runs, so a second run of a crash test proves nothing.

A test may share its gateway with its own first run. With `--reruns 1 --rerun-all`, the first run of each test fails at
its end, so that a test fails if its second run does not work.
"""

from collections.abc import Generator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rerun-all", action="store_true", help="with --reruns 1: run each test twice in a session")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    yield
    if item.config.getoption("--rerun-all") and getattr(item, "execution_count", 0) == 1:
        pytest.fail("--rerun-all: this was the first run", pytrace=False)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("crash"):
            item.add_marker(pytest.mark.flaky(reruns=0), append=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    again = {report.nodeid: report for report in terminalreporter.getreports("rerun")}
    if not again:
        return
    failed = {report.nodeid for report in terminalreporter.getreports("failed")}
    terminalreporter.section("run once more")
    for name, report in sorted(again.items()):
        said = "failed twice" if name in failed else "flaky"
        terminalreporter.line(f"{said}: {name}")
        terminalreporter.line(f"    {_cause(report)}")


def _cause(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:
        return ""
    return f"{Path(crash.path).name}:{crash.lineno}: {crash.message.strip().partition(chr(10))[0]}"

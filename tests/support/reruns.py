"""Support for `--reruns 1` of CI: names the tests that needed a second run, and never repeats crash tests.

A lost or duplicated job may appear only once in many runs, so a second run of a crash test proves nothing.
"""

from pathlib import Path

import pytest


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

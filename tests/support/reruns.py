"""`--reruns 1`, as CI asks for it: what needed a second run is named, and a crash test gets none.

A lost or doubled job shows itself once in many runs, so a second one that goes well excuses nothing there.
"""

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
    return str(getattr(crash, "message", "")).strip().partition("\n")[0]

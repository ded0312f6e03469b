"""A plugin of pytest that tells coverage which test runs. coverage finds no test of hypothesis by itself."""

from collections.abc import Generator

import pytest
from coverage import Coverage


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    measured = Coverage.current()
    assert measured is not None, "coverage runs pytest"
    measured.switch_context(item.nodeid.partition("[")[0])
    result = yield
    measured.switch_context("")
    return result

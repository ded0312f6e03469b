"""Runs the modules that take minutes first, so that no worker starts one of them at the end of the run."""

from typing import Final

import pytest

LONGEST: Final = ("tests/test_wheel.py", "tests/crash/test_kills.py", "tests/crash/test_freezes.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))

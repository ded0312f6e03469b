"""Begins with the modules that take minutes: whatever is begun last is what everybody waits for."""

from typing import Final

import pytest

LONGEST: Final = ("tests/test_wheel.py", "tests/crash/test_kills.py", "tests/crash/test_freezes.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))

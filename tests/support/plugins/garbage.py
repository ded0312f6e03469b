"""Lets the garbage collector of a test process run as seldom as that of a gateway.

A process has collected thousands of tests, and with Python's thresholds it would visit their objects again and again.
"""

import gc

gc.set_threshold(20_000, 20, 50)


def pytest_collection_finish() -> None:
    gc.freeze()

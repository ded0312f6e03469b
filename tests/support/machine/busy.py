"""Processes that take the cores of this machine from others."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_PER_CORE = 2
# Also if the test that started it was killed.
_BUSY = "import time\nend = time.monotonic() + 240\nwhile time.monotonic() < end: pass"


@contextmanager
def busy_processes() -> Iterator[None]:
    """Keep all cores busy during the block, with more than one process for each."""
    with ExitStack() as stack:
        for _ in range(_PER_CORE * (os.cpu_count() or 1)):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", _BUSY]))
            stack.callback(process.kill)
        yield

"""Freezes processes. A frozen process keeps its connections open and sends nothing, unlike a process that died."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def family(pid: int) -> list[int]:
    """The process and its descendants, parents first."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    below = [int(child) for child in children.read_text().split()] if children.exists() else []
    return [pid, *(one for child in below for one in family(child))]


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Stop the process and all its descendants during the block."""
    stopped: list[int] = []
    try:
        # A parent that is stopped forks no more, so the second look finds whoever was forked during the first.
        for _ in range(2):
            for one in family(pid):
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGSTOP)
                    stopped.append(one)
        yield
    finally:
        for one in reversed(stopped):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGCONT)

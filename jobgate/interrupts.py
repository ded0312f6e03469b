"""Ctrl-C before a command runs."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silent_interrupts() -> Iterator[None]:
    """Let Ctrl-C end the process without a traceback, while it imports what it will run.

    A process that ignores Ctrl-C, as one in the background of a shell does, continues to ignore it.
    """
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if is_default:
            signal.signal(signal.SIGINT, signal.default_int_handler)

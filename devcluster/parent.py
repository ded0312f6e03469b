"""Ends this process when the one that started it ends, however that happens. Linux only; elsewhere nothing is done."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with(parent: int) -> None:
    """Ask the kernel for SIGTERM at the death of our parent; one that is dead already is noticed here."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise SystemExit("the process that started this one has ended")

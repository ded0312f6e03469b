"""The standard streams of a process."""

import io
import os
import sys
from typing import Literal


def prepare_streams() -> None:
    r"""Let the streams write a character that their encoding lacks, such as `…` in ASCII, as an escape (`\u2026`).

    A stream that the parent process has closed is an empty file.
    """
    # PTH123, SIM115: they stay open until the process ends.
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard(stream: Literal["stdout", "stderr"]) -> None:
    """Discard what is written to a stream from here on. Python would report a full disk again at its exit."""
    setattr(sys, stream, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - until the process ends

"""The standard streams of a process."""

import io
import sys


def prepare_streams() -> None:
    r"""Let the streams write a character that their encoding lacks, such as `…` in ASCII, as an escape (`\u2026`)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

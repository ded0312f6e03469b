"""Standard output and standard error of the commands. No other module writes to them.

What a gateway answers can contain text of tenants and of containers, so characters that a terminal interprets are made
visible, also in a pipe: its reader may be `less` or a file that is shown later.
"""

import shutil
import sys
from typing import Final, TextIO

import typer

from jobgate.cli.rendering.visible import visible, visible_log_line
from jobgate.streams import discard

_PREFIX: Final = "jobgate: "


def say(text: str, *, stream: TextIO | None = None, colour: str | None = None) -> None:
    """Print lines on standard output or another stream, in a colour if that is a terminal."""
    _write(stream or sys.stdout, visible(text), colour)


def report(text: str) -> None:
    """Print a line for the user on standard error, with the name of the command before it."""
    advise(f"{_PREFIX}{text}")


def advise(text: str) -> None:
    """Print lines on standard error. If it cannot be written, only the exit status tells what happened."""
    try:
        _write(sys.stderr, visible(text))
    except OSError:
        discard("stderr")


def _write(stream: TextIO, text: str, colour: str | None = None) -> None:
    stream.write(f"{typer.style(text, fg=colour) if colour and stream.isatty() else text}\n")
    stream.flush()


def terminal_width() -> int | None:
    """Return the columns of the terminal; None if standard output is none, so that programs get whole lines."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


class LogOutput:
    """Prints the lines of logs on standard output.

    Args:
        is_raw: whether the lines are printed as the container wrote them. A terminal never gets them so.
    """

    def __init__(self, *, is_raw: bool = False) -> None:
        self.is_terminal = sys.stdout.isatty()
        self._is_raw = is_raw and not self.is_terminal
        if is_raw and self.is_terminal:
            report("--raw has no effect on a terminal, which would interpret control characters of the log")

    def write(self, line: str, *, prefix: str = "") -> None:
        """Print a line. Without --raw, each state of a progress bar, which ends with a carriage return, has a line."""
        if self._is_raw:
            sys.stdout.buffer.write(f"{prefix}{line}\n".encode("utf-8", "surrogateescape"))
            sys.stdout.buffer.flush()
            return
        for part in line.removesuffix("\r").split("\r"):
            _write(sys.stdout, f"{prefix}{visible_log_line(part)}")

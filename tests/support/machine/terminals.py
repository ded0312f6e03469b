"""Runs a script on a terminal of its own, and returns what the screen shows in the end."""

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b[()][A-Z0-9]|\r|\n|[^\x1b\r\n]+")


class Screen:
    """What remains of the output of a program that moves the cursor up and erases lines, as rich does.

    It has no width: a program that knows the width of its terminal breaks its lines itself.
    """

    def __init__(self) -> None:
        self._lines = [""]
        self._row = self._column = 0

    def write(self, text: str) -> None:
        for match in _CONTROL.finditer(text):
            count, action = match.group(1), match.group(2)
            if match.group() == "\n":
                self._row += 1
                if self._row == len(self._lines):
                    self._lines.append("")
            elif match.group() == "\r":
                self._column = 0
            elif action == "A":
                self._row = max(0, self._row - int(count or 1))
            elif action == "K":
                self._lines[self._row] = "" if count == "2" else self._lines[self._row][: self._column]
            elif action is None and not match.group().startswith("\x1b"):
                self._print(match.group())

    def _print(self, text: str) -> None:
        line = self._lines[self._row].ljust(self._column)
        self._lines[self._row] = line[: self._column] + text + line[self._column + len(text) :]
        self._column += len(text)

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._lines).strip("\n")


def on_terminal(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    follow: Callable[[str], object] = lambda _: None,
) -> str:
    """Return the screen after the command has ended. `follow` gets each piece of what it writes.

    Raises:
        TimeoutError: the command has not ended in time. The message has its screen.
    """
    control, terminal = pty.openpty()
    screen, deadline = Screen(), time.monotonic() + timeout
    process = subprocess.Popen(
        command, cwd=cwd, env=dict(env), stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    )
    os.close(terminal)
    try:
        while True:
            ready, _, _ = select.select([control], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"the command has not ended after {timeout:g} s:\n{screen.text()}")
            try:
                piece = os.read(control, 65536)
            except OSError:  # on Linux, the end of all programs on the terminal
                piece = b""
            if not piece:
                process.wait(timeout=30)
                return screen.text()
            written = piece.decode("utf-8", "replace")
            follow(written)
            screen.write(written)
    finally:
        process.kill()
        process.wait()
        os.close(control)

"""Text of programs and of the cluster as short lines for messages."""

import re
from typing import Final

from app.domain.errors import shorten

# Enough to see the end of a traceback. The first failure of a job has as many; other failures have one.
MAX_LINES: Final = 10
_MAX_LINE: Final = 200
_MAX_MESSAGE: Final = 1000  # a message of the scheduler about a large cluster has about 500 characters
# The last lines are looked for in this much of the log, so that a log without line breaks costs little.
_READ_BYTES: Final = 16 * 1024
# Escape sequences of terminals: colours and cursor movements (CSI), titles and links (OSC), and two-byte ones.
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


def last_lines(log: bytes, count: int = MAX_LINES) -> tuple[str, ...]:
    """Return the last `count` lines of a log that are not blank, as printable text of a bounded length."""
    text = _ESCAPES.sub("", log[-_READ_BYTES:].decode("utf-8", "replace"))
    shown = [_last_state(line).replace("\t", "    ").rstrip() for line in text.split("\n")]
    if len(log) > _READ_BYTES and shown[0]:
        shown[0] = f"…{shown[0]}"  # the end of a line
    return tuple(shorten_middle(line, _MAX_LINE) for line in shown if line.strip())[-count:]


def shorten_middle(text: str, limit: int) -> str:
    """Return printable text with its beginning, such as the name of an exception, and the longer part of its end."""
    if len(text) > limit:
        begin = 0 if text.startswith("…") else limit // 4
        text = f"{text[:begin]}…{text[begin + 1 - limit :]}"
    return shorten(text, limit)


def one_line(text: str, limit: int = _MAX_MESSAGE) -> str:
    """Return text as one printable line of at most `limit` characters."""
    return shorten(" ".join(_ESCAPES.sub("", text).split()), limit)


def _last_state(line: str) -> str:
    """Return what a terminal shows of a line that a progress bar rewrote after each carriage return."""
    return next((state for state in reversed(line.split("\r")) if state.strip()), "")

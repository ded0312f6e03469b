"""Text of programs and of the cluster as short lines for messages."""

import re
from typing import Final

from app.domain.errors import shorten

# Enough to see the end of a traceback. The first failure of a job has as many; other failures have one.
MAX_LINES: Final = 10
_MAX_LINE: Final = 200
_MAX_CAUSE: Final = 400  # container runtimes wrap the cause of a start error in 200 characters
_MAX_MESSAGE: Final = 1000  # a message of the scheduler about a large cluster has about 500 characters
# The last lines are looked for in this much of the log, so that a log without line breaks costs little.
_READ_BYTES: Final = 16 * 1024
# The bytes of a character of UTF-8 behind its first one: at most three.
_CONTINUATION: Final = range(0x80, 0xC0)
_MAX_REST: Final = 4
# Escape sequences of terminals: colours and cursor movements (CSI), titles and links (OSC), and two-byte ones.
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


def last_lines(log: bytes, count: int = MAX_LINES) -> tuple[str, ...]:
    """Return the last `count` lines of a log that are not blank, as printable text of a bounded length."""
    read = log[-_READ_BYTES:]
    if len(read) < len(log):
        read = whole_characters(read)
    text = _ESCAPES.sub("", read.decode("utf-8", "replace"))
    shown = [_last_state(line).replace("\t", "    ").rstrip() for line in text.split("\n")]
    if len(log) > _READ_BYTES and shown[0]:
        shown[0] = f"…{shown[0]}"  # the end of a line
    return tuple(shorten_middle(line, _MAX_LINE) for line in shown if line.strip())[-count:]


def whole_characters(end: bytes) -> bytes:
    """Return the end of a UTF-8 text that was cut anywhere, without the rest of the character at the cut."""
    rest = next((index for index, byte in enumerate(end[:_MAX_REST]) if byte not in _CONTINUATION), 0)
    return end[rest:]


def last_line(message: str) -> str:
    """Return the last line of a termination message, which may be the end of a log; empty if the message is blank."""
    lines = message.strip().splitlines()
    return shorten_middle(one_line(lines[-1], len(message)), _MAX_CAUSE) if lines else ""


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

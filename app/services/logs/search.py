"""Regular expressions of clients, whose time is linear in the text and whose size is bounded.

RE2 has no backreferences and does not backtrack, so no pattern takes exponential time. The time for a byte is at most
proportional to the size of the compiled pattern, which `LARGEST` bounds.
"""

from typing import Final

import re2

LONGEST: Final = 1000
"""Characters of a pattern."""
LARGEST: Final = 1500
"""Instructions of a compiled pattern. A letter of any language takes 1200 of them."""
_BY_LINE: Final = b"(?m)"  # `^` and `$` match at each line
# Bytes that RE2 may use for the states of one pattern.
_MEMORY: Final = 1024 * 1024


class PatternError(ValueError):
    """A pattern is not valid, or too large."""


class LinePattern:
    """Finds lines that contain a match. `^` and `$` are the beginning and the end of a line.

    Surrogates of `text` stand for bytes that are not UTF-8, which no pattern has.

    Raises:
        PatternError: `text` is no pattern of RE2, or too large.
    """

    def __init__(self, text: str) -> None:
        options = re2.Options()
        options.never_nl = True  # a match never exceeds its line
        options.never_capture = True
        options.log_errors = False
        options.max_mem = _MEMORY
        try:
            # Bytes that are not UTF-8 match nothing, and leave the rest of their line searchable.
            self._pattern = re2.compile(_BY_LINE + text.encode(errors="surrogateescape"), options)
        except re2.error as error:
            reason: bytes = error.args[0]
            raise PatternError(reason.replace(_BY_LINE, b"", 1).decode(errors="replace")) from None
        if self._pattern.programsize > LARGEST:
            raise PatternError("the pattern is too large: it repeats too much")

    def find(self, text: bytes, begin: int) -> int | None:
        """Return where the first match from this byte on begins, which is the beginning of a line."""
        found = self._pattern.search(text, begin)
        return None if found is None else int(found.start())

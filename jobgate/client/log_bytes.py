"""Lines of logs, from the bytes that a container wrote. Pure."""

from typing import Final

_END: Final = b"\n"


class LineSplitter:
    """Splits bytes into lines as the cluster does, at line feeds only.

    Bytes that are not UTF-8 become surrogates (`surrogateescape`), from which they can be written again.
    """

    def __init__(self) -> None:
        self._begun: list[bytes] = []  # parts of a line whose end has not arrived

    def feed(self, chunk: bytes) -> list[str]:
        """Return the lines that end in the chunk."""
        first, *others = chunk.split(_END)
        self._begun.append(first)
        if not others:
            return []
        *lines, last = [b"".join(self._begun), *others]
        self._begun = [last]
        return list(map(_text, lines))

    def rest(self) -> list[str]:
        """Return the last line, if it has no end."""
        last = b"".join(self._begun)
        self._begun = []
        return [_text(last)] if last else []


def readable(line: str) -> str:
    """Return the line with U+FFFD for each byte that is not UTF-8, so that every encoder accepts it."""
    return line if line.isascii() else line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _text(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")

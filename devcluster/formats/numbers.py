"""Numbers in texts that clients send. Pure."""

_LARGEST = 2**63 - 1


def whole_number(text: str) -> int | None:
    """Return the number if the text consists of the digits 0 to 9 and the number fits 64 bits, or None.

    `str.isdigit` also accepts superscripts, for which int() raises ValueError, as it does for thousands of digits.
    """
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        return None
    number = int(text)
    return number if number <= _LARGEST else None

"""Resolves plain YAML scalars by the rules of kubectl (sigs.k8s.io/yaml, which uses go-yaml v2).

These are the rules of YAML 1.1 with two exceptions: sexagesimal numbers (12:30:45) and timestamps are strings.

    yes, On, y, no, Off, n, true, False     boolean
    ~, null, Null, NULL, and nothing        null
    0400, 0o400, 0b11, 0x1F, 1_000, -010    integer; 08 is not octal and is read as 8
    1.5, .5, 1e3, 1_0.5                     number; an integer if it has no fraction, as in JSON
    everything else                         string
"""

import math
import re
from typing import Final

from app.domain.decoding.values import MAX_NUMBER_LENGTH, JsonValue

_KEYWORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
}
_BASES: Final = {"0x": 16, "0o": 8, "0b": 2}
_DIGITS: Final = {16: re.compile(r"[0-9a-fA-F]+"), 8: re.compile(r"[0-7]+"), 2: re.compile(r"[01]+")}
_DECIMAL: Final = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_OCTAL: Final = re.compile(r"0[0-7]+", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)
_NUMBER_STARTS: Final = frozenset("+-.0123456789")


class NotJsonError(ValueError):
    """The scalar is a number that JSON cannot represent. `code` is the code of the field error."""

    def __init__(self, code: str, detail: str, accepted: str) -> None:
        super().__init__(detail)
        self.code, self.detail, self.accepted = code, detail, accepted


def resolve(text: str) -> JsonValue:
    """Return the value of a plain scalar.

    Raises:
        NotJsonError: it is infinite, not a number, too large or too long.
    """
    if text in _KEYWORDS:
        return _KEYWORDS[text]
    # The empty text is a keyword, so there is a first character.
    if text[0] not in _NUMBER_STARTS:
        return text
    if _NOT_FINITE.fullmatch(text):
        raise NotJsonError("NotANumber", f"{text} has no JSON form", f'a finite number, or "{text}" in quotes')
    # A leading point makes go-yaml skip the removal of underscores.
    plain = text if text[0] == "." else text.replace("_", "")
    digits = plain[1:] if plain[:1] in ("+", "-") else plain
    base = _BASES.get(digits[:2].lower())
    if base is not None:
        return _integer(plain, digits[2:], base) if _DIGITS[base].fullmatch(digits[2:]) else text
    if _DECIMAL.fullmatch(digits):
        return _integer(plain, digits, 10)
    if _OCTAL.fullmatch(digits):
        return _integer(plain, digits, 8)
    return _number(plain) if _FLOAT.fullmatch(plain) else text


def _integer(plain: str, digits: str, base: int) -> int:
    _check_length(digits)
    return int(digits, base) * (-1 if plain.startswith("-") else 1)


def _number(plain: str) -> int | float:
    _check_length(plain)
    number = float(plain)
    if not math.isfinite(number):
        raise NotJsonError("OutOfRange", "the number is too large", f'a finite 64-bit float, or "{plain}" in quotes')
    # kubectl writes 1e3 into JSON as 1000, which fits an integer field.
    return int(number) if number.is_integer() and abs(number) < 2**63 else number


def _check_length(digits: str) -> None:
    if len(digits) > MAX_NUMBER_LENGTH:
        raise NotJsonError("NumberTooLong", "a number has too many digits", f"at most {MAX_NUMBER_LENGTH} characters")

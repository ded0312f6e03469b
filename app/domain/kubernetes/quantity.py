"""Parses Kubernetes quantities such as "500m", "1.5Gi" and "12e6". Values are exact, and the time is bounded.

As in Kubernetes, white space around a quantity is ignored, digits beyond nano are rounded away from zero, and a binary
quantity is capped at 2^63-1. The parser is stricter in two points that no real manifest needs: a number has a digit,
and an exponent is 100 or less.
"""

import re
from decimal import ROUND_CEILING, ROUND_UP, Context, Decimal

from app.domain.errors import InvalidManifest, shorten

# The JSON schema of pod templates uses this pattern too, so that both accept the same quantities.
QUANTITY_PATTERN = (
    r"^\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?\s*$"
)
ACCEPTED = "a number with one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei, or an exponent, as 500m or 1.5Gi"

# Together with the largest exponent, this bounds the digits of any intermediate value.
_MAX_LENGTH = 64
_MAX_EXPONENT = 100
_CAP = Decimal(2**63 - 1)
_NANO = Decimal("1e-9")
_ZERO = Decimal(0)
_PARTS = re.compile(r"([+-]?)([0-9.]+)(.*)", re.ASCII)
_SHAPE = re.compile(QUANTITY_PATTERN.removesuffix("$"), re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_SUFFIX_OF_POWER = {power: suffix for suffix, power in _DECIMAL.items()}
_SUFFIX_OF_KIBI = {power: suffix for suffix, power in _BINARY.items()} | {0: ""}
# Enough digits for a number of 64 digits times 2^60 or 10^100, with nanos, so that the context never rounds.
_EXACT = Context(prec=300)


def parse_quantity(text: str) -> Decimal:
    """Parse a quantity, or raise InvalidManifest with the code InvalidQuantity."""
    if len(text) > _MAX_LENGTH or not _SHAPE.fullmatch(text):
        raise _invalid(text)
    parts = _PARTS.fullmatch(text.strip())
    assert parts
    sign, number, suffix = parts.groups()
    amount = Decimal(number)
    if suffix in _BINARY:
        amount = _EXACT.multiply(amount, Decimal(1024 ** _BINARY[suffix]))
    else:
        amount = amount.scaleb(_exponent(suffix, text), _EXACT)
    amount = amount.quantize(_NANO, ROUND_UP, _EXACT)
    if suffix in _BINARY:
        amount = min(amount, _CAP)
    return _EXACT.minus(amount) if sign == "-" else amount


def value_of(quantity: object) -> Decimal:
    """Return the value of a quantity in the cluster."""
    try:
        return parse_quantity(str(quantity))
    except InvalidManifest:
        return _ZERO  # neither the API server nor Kueue writes such a quantity


def _exponent(suffix: str, text: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    exponent = int(suffix[1:])
    if abs(exponent) > _MAX_EXPONENT:
        raise _invalid(text)
    return exponent


def _invalid(text: str) -> InvalidManifest:
    return InvalidManifest(f"{shorten(text)} is not a quantity: give {ACCEPTED}", code="InvalidQuantity")


def whole(quantity: Decimal) -> int:
    """Return bytes or devices, rounded up like the scheduler does."""
    return int(quantity.to_integral_value(ROUND_CEILING))


def format_quantity(quantity: Decimal, *, binary: bool = False) -> str:
    """Return the canonical form of Kubernetes: no fraction, and the largest suffix with which the value is exact."""
    if quantity == 0:
        return "0"
    integral = quantity == quantity.to_integral_value()
    if binary and integral and 1024 <= abs(quantity) <= _CAP:
        return _format_binary(int(quantity))
    return _format_decimal(quantity)


def _format_binary(amount: int) -> str:
    power = 0
    while power < max(_SUFFIX_OF_KIBI) and amount % 1024 == 0:
        amount //= 1024
        power += 1
    return f"{amount}{_SUFFIX_OF_KIBI[power]}"


def _format_decimal(quantity: Decimal) -> str:
    sign, digits, exponent = quantity.normalize(_EXACT).as_tuple()
    assert isinstance(exponent, int)
    power = exponent - exponent % 3
    mantissa = "".join(map(str, digits)) + "0" * (exponent - power)
    suffix = _SUFFIX_OF_POWER.get(power, f"e{power}")
    return f"{'-' if sign else ''}{mantissa}{suffix}"

"""The words of errors for the types of values."""

from typing import Any, Final

from app.domain.errors import Problems

# bool comes before int, since it is a subclass of int.
_NAMES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "true or false"),
    (int, "an integer"),
    (float, "a number"),
    (str, "a string"),
    (list, "a list"),
    (dict, "an object"),
)


def add_wrong_type(problems: Problems, pointer: str, code: str, expected: str, value: Any) -> None:
    """Report that a value has another type than `expected`, which is the words of an error, such as "a string"."""
    found = next((name for type_, name in _NAMES if isinstance(value, type_)), "null")
    accepted = expected
    if expected == "a string" and isinstance(value, (int, float)):
        accepted = "a string: put the value in quotes"
    elif expected == "an integer" and isinstance(value, str) and value.isdecimal():
        accepted = "an integer: write the value without quotes"
    problems.add(pointer, code, f"this must be {expected}, and is {found}", accepted)

"""Label and field selectors. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from devcluster.errors import StatusError, bad_request
from devcluster.formats.names import label_value, qualified_name
from devcluster.formats.numbers import whole_number
from devcluster.formats.objects import Object, labels

Test = Callable[[dict[str, str]], bool]
_TOKEN = re.compile(r"\s*(==|!=|=|!|<|>|\(|\)|,|[^\s=!<>(),]+)")


@dataclass(frozen=True, slots=True)
class Selector:
    """The label selector and the field selector of a request. An empty selector matches everything."""

    label_tests: tuple[Test, ...] = ()
    fields: tuple[tuple[str, bool, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.label_tests or self.fields)

    def matches(self, obj: Object) -> bool:
        return all(
            field_value(obj, path) == value if equal else field_value(obj, path) != value
            for path, equal, value in self.fields
        ) and self._labels_match(obj)

    def _labels_match(self, obj: Object) -> bool:
        if not self.label_tests:
            return True
        found = labels(obj)
        return all(test(found) for test in self.label_tests)


def field_value(obj: Object, path: str) -> str:
    """Return the value at a dotted path as field selectors compare it; an absent value is the empty string."""
    value: Any = obj
    for part in path.split("."):
        if not isinstance(value, dict):
            return ""
        value = value.get(part)
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def holds(expression: Object, found: dict[str, str]) -> bool:
    """Evaluate one entry of matchExpressions of a label selector or a node selector."""
    value = found.get(expression["key"])
    wanted = expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _is_beyond(value or "", whole_number(wanted[0]), above=operator == "Gt")
        case _:
            return False


def selects(selector: Object | None, found: dict[str, str]) -> bool:
    """Evaluate a LabelSelector. An absent selector selects nothing, an empty one everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(found.get(key) == value for key, value in wanted.items()) and all(
        holds(entry, found) for entry in selector.get("matchExpressions") or []
    )


def parse_fields(
    text: str, allowed: frozenset[str], refusal: Callable[[str], StatusError], aliases: dict[str, str]
) -> tuple[tuple[str, bool, str], ...]:
    found = []
    for term in filter(None, text.split(",")):
        match = re.fullmatch(r"([^=!]+)(==|!=|=)(.*)", term)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        path, operator, value = match.groups()
        if path not in allowed:
            raise refusal(path)
        found.append((aliases.get(path, path), operator != "!=", value))
    return tuple(found)


def parse_labels(text: str) -> tuple[Test, ...]:
    """Compile a label selector.

    Raises:
        StatusError: the selector is malformed; the message is that of a real API server.
    """
    tokens = _TOKEN.findall(text)
    # Characters that belong to no token are dropped by findall.
    if re.sub(r"\s", "", text) != "".join(tokens):
        raise _unparsable(f"found '{text}', expected: identifier")
    tests = []
    position = 0
    while position < len(tokens):
        test, position = _requirement(tokens, position)
        tests.append(test)
        if position < len(tokens):
            if tokens[position] != ",":
                raise _unparsable(f"found '{tokens[position]}', expected: ',' or 'end of string'", prefix="")
            position += 1
            if position == len(tokens):
                raise _unparsable("found '', expected: identifier after ','", prefix="")
    return tuple(tests)


def _unparsable(why: str, prefix: str = "unable to parse requirement: ") -> StatusError:
    return bad_request(f"{prefix}{why}")


def _requirement(tokens: list[str], position: int) -> tuple[Test, int]:
    negated = tokens[position] == "!"
    position += negated
    key = tokens[position] if position < len(tokens) else ""
    wrong = qualified_name(key)
    if wrong:
        raise _unparsable(f'key: Invalid value: "{key}": {wrong}')
    position += 1
    if negated:
        return (lambda found: key not in found), position
    operator = tokens[position] if position < len(tokens) else ","
    if operator == ",":
        return (lambda found: key in found), position
    if operator in ("in", "notin"):
        return _set_requirement(key, operator, tokens, position + 1)
    if operator in ("=", "==", "!=", "<", ">"):
        return _comparison(key, operator, tokens, position + 1)
    raise _unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")


def _set_requirement(key: str, operator: str, tokens: list[str], position: int) -> tuple[Test, int]:
    opening = tokens[position] if position < len(tokens) else ""
    if opening != "(":
        raise _unparsable(f"found '{opening}' expected: '('")
    try:
        closing = tokens.index(")", position)
    except ValueError:
        raise _unparsable("found '', expected: ',' or ')'") from None
    values = frozenset(word for word in tokens[position + 1 : closing] if word != ",")
    for value in values:
        _check_value(value)
    if operator == "in":
        return (lambda found: found.get(key) in values), closing + 1
    return (lambda found: found.get(key) not in values), closing + 1


def _comparison(key: str, operator: str, tokens: list[str], position: int) -> tuple[Test, int]:
    value = ""
    if position < len(tokens) and tokens[position] != ",":
        value = tokens[position]
        position += 1
    _check_value(value)
    if operator == "!=":
        return (lambda found: found.get(key) != value), position
    if operator in ("=", "=="):
        return (lambda found: found.get(key) == value), position
    limit = whole_number(value) or 0
    return (lambda found: _is_beyond(found.get(key, ""), limit, above=operator == ">")), position


def _is_beyond(value: str, limit: int | None, *, above: bool) -> bool:
    """Return whether the value is a number above the limit, or below it. Without a limit, no value is."""
    number = whole_number(value)
    if number is None or limit is None:
        return False
    return number > limit if above else number < limit


def _check_value(value: str) -> None:
    wrong = label_value(value)
    if wrong:
        raise _unparsable(f'values[0][{value}]: Invalid value: "{value}": {wrong}')

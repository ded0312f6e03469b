"""Label selectors as kubectl writes them: `tier=web,env!=prod,zone in (a,b),!legacy`.

    text ─▶ tokens ─▶ requirements ─▶ matches(labels), or SQL

A requirement `a=b` is represented as `a in (b)` and `a!=b` as `a notin (b)`, which also treat absent labels alike.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.domain.errors import FieldError, InvalidManifest, shorten
from app.domain.kubernetes import names

# Bounds the time of parsing and the size of the SQL condition.
MAX_SELECTOR_LENGTH = 4096

_ACCEPTED = "requirements joined by commas: key, !key, key=value, key!=value, key in (a,b), key notin (a,b)"
# A regular expression for texts that `parse_selector` accepts, without its limits of length.
_SPACE = r"[ \t\r\n]*"
_KEY = (
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_VALUE = "([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_VALUES = rf"\({_SPACE}{_VALUE}({_SPACE},{_SPACE}{_VALUE})*{_SPACE}\)"
_COMPARISON = rf"{_SPACE}(==?|!=){_SPACE}{_VALUE}|[ \t\r\n]+(in|notin){_SPACE}{_VALUES}"
_REQUIREMENT = rf"(!{_SPACE}{_KEY}|{_KEY}({_COMPARISON})?)"
SELECTOR_PATTERN = rf"^{_SPACE}({_REQUIREMENT}({_SPACE},{_SPACE}{_REQUIREMENT})*{_SPACE})?$"
_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+")
_END = ""
_SYMBOLS = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">", _END))


class Operator(StrEnum):
    """How a requirement compares, with the operators of a LabelSelector's matchExpressions."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One condition on one label; values are sorted and distinct."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        present = self.key in labels
        match self.operator:
            case Operator.EXISTS:
                return present
            case Operator.DOES_NOT_EXIST:
                return not present
            case Operator.IN:
                return present and labels[self.key] in self.values
            case Operator.NOT_IN:
                return not present or labels[self.key] not in self.values


def parse_selector(text: str, pointer: str = "") -> tuple[Requirement, ...]:
    """Parse a selector. The empty text selects everything.

    Raises:
        InvalidManifest: the text is not a selector; the code is InvalidSelector.
    """
    if len(text) > MAX_SELECTOR_LENGTH:
        raise _invalid(pointer, f"the selector is longer than {MAX_SELECTOR_LENGTH} characters")
    parser = _Parser(_TOKEN.findall(text), pointer)
    return parser.requirements()


def matches(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    return all(requirement.matches(labels) for requirement in requirements)


def _invalid(pointer: str, detail: str) -> InvalidManifest:
    error = FieldError(pointer=pointer, code="InvalidSelector", detail=detail, accepted=_ACCEPTED)
    return InvalidManifest("the label selector is not valid", code="InvalidSelector", errors=(error,))


class _Parser:
    def __init__(self, tokens: list[str], pointer: str) -> None:
        self._tokens = tokens
        self._pointer = pointer
        self._next = 0

    def requirements(self) -> tuple[Requirement, ...]:
        if not self._tokens:
            return ()
        found = [self._requirement()]
        while self._take() == ",":
            found.append(self._requirement())
        # `_take` at the end returns "" and moves beyond the list. Any other token that is no comma lies within it.
        if self._next <= len(self._tokens):
            raise self._unexpected_token(self._tokens[self._next - 1], "a comma or the end")
        return tuple(found)

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(key=self._key(self._take()), operator=Operator.DOES_NOT_EXIST)
        key = self._key(self._take())
        match self._peek():
            case "," | "":
                return Requirement(key=key, operator=Operator.EXISTS)
            case "=" | "==":
                return Requirement(key=key, operator=Operator.IN, values=self._value())
            case "!=":
                return Requirement(key=key, operator=Operator.NOT_IN, values=self._value())
            # `in` and `notin` are operators only after a key, so labels with these names can be selected too.
            case "in":
                return Requirement(key=key, operator=Operator.IN, values=self._set())
            case "notin":
                return Requirement(key=key, operator=Operator.NOT_IN, values=self._set())
        raise self._unexpected_token(self._peek(), "=, !=, in or notin")

    def _value(self) -> tuple[str, ...]:
        self._take()
        if self._peek() in {",", _END}:
            return ("",)
        return (self._check(self._take()),)

    def _set(self) -> tuple[str, ...]:
        self._take()
        if (opening := self._take()) != "(":
            raise self._unexpected_token(opening, "an opening parenthesis")
        values = set()
        while True:
            values.add("" if self._peek() in {",", ")"} else self._check(self._take()))
            match self._take():
                case ",":
                    continue
                case ")":
                    return tuple(sorted(values))
                case other:
                    raise self._unexpected_token(other, "a comma or a closing parenthesis")

    def _key(self, token: str) -> str:
        if token in _SYMBOLS:
            raise self._unexpected_token(token, "a label key")
        if wrong := names.label_key(token):
            raise _invalid(self._pointer, f"the key {shorten(token)}: {wrong}")
        return token

    def _check(self, token: str) -> str:
        if token in _SYMBOLS:
            raise self._unexpected_token(token, "a label value")
        if wrong := names.label_value(token):
            raise _invalid(self._pointer, f"the value {shorten(token)}: {wrong}")
        return token

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else _END

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _unexpected_token(self, token: str, expected: str) -> InvalidManifest:
        found = f"found {shorten(token)}" if token else "the selector ends"
        return _invalid(self._pointer, f"{found} where {expected} was expected")

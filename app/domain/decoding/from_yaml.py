"""YAML: the part that means the same to every reader, built from parser events so that nothing ever expands.

Anchors, aliases, tags and merge keys are refused. So is a plain scalar that YAML 1.1 and YAML 1.2 read differently:
`no` is a word to one and false to the other, and the one who wrote it may have meant either.
"""

import math
import re
from dataclasses import dataclass, field

import yaml

from app.domain.decoding.values import (
    DEFAULT_LIMITS,
    MAX_NUMBER_LENGTH,
    JsonValue,
    Limits,
    check_int,
    check_text,
    refuse,
    refuse_all,
    refuse_depth,
    refuse_keys,
    refuse_values,
    utf8_text,
)
from app.domain.errors import Problems, pointer_to, shorten

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_CONSTANTS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
# Each is a boolean in YAML 1.1 and a word in YAML 1.2.
_NORWAY = frozenset(
    spelling for word in ("y", "yes", "on", "n", "no", "off") for spelling in (word, word.capitalize(), word.upper())
)
_AMBIGUOUS_NUMBER = re.compile(
    r"""[-+]?(?: 0[0-9_]+ | 0o[0-7]+                    # octal, or not
      | 0b[01_]+                                        # binary in 1.1, a word in 1.2
      | [-+]0x[0-9a-fA-F_]+ | 0x[0-9a-fA-F]*_[0-9a-fA-F_]*
      | [0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?              # 1_000
      | [0-9]+\.[0-9]*_[0-9_]*
      | [0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?            # sexagesimal: 12:30:45
    )""",
    re.VERBOSE | re.ASCII,
)
_INT = re.compile(r"[-+]?[0-9]+", re.ASCII)
_HEX = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)
_MAYBE_NUMBER = frozenset("+-.0123456789")


def decode_yaml(body: bytes, *, limits: Limits = DEFAULT_LIMITS) -> tuple[JsonValue, ...]:
    """Decode a stream of documents (empty ones are left out), or raise MalformedDocument."""
    text = utf8_text(body)
    problems = Problems()
    builder = _Builder(limits=limits, problems=problems)
    try:
        loader = _LOADER(text)
        try:
            while loader.check_event() and not problems.full:
                builder.accept(loader.get_event())
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        if not problems:
            refuse("MalformedYaml", _describe(error), "YAML")
    if problems:
        refuse_all(problems)
    if not builder.documents:
        refuse("EmptyBody", "the body holds no document", "at least one document")
    return tuple(builder.documents)


def _describe(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return shorten(str(getattr(error, "reason", error)))


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


@dataclass(slots=True)
class _Open:
    """A mapping or sequence whose end has not come yet; `key` is what its next value belongs to."""

    container: dict[str, JsonValue] | list[JsonValue]
    pointer: str
    key: str | None = None

    def place(self) -> str:
        if isinstance(self.container, list):
            return f"{self.pointer}/{len(self.container)}"
        return self.pointer if self.key is None else pointer_to(self.pointer, self.key)


@dataclass(slots=True, kw_only=True)
class _Builder:
    limits: Limits
    problems: Problems
    documents: list[JsonValue] = field(default_factory=list)
    _open: list[_Open] = field(default_factory=list)
    _keys: int = 0
    _values: int = 0
    _documents_seen: int = 0

    def accept(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.MappingStartEvent():
                self._start(event, {})
            case yaml.SequenceStartEvent():
                self._start(event, [])
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end()
            case yaml.AliasEvent():
                self._refuse(event, "AliasNotSupported", "an alias (*) is not supported", "the value itself")
                self._add(event, None)
            case yaml.DocumentStartEvent():
                self._start_document(event)

    def _start_document(self, event: yaml.DocumentStartEvent) -> None:
        self._documents_seen += 1
        if self._documents_seen > self.limits.max_documents:
            refuse("TooManyDocuments", "there are too many documents", f"at most {self.limits.max_documents}")
        if event.tags:
            self._refuse(event, "TagNotSupported", "a %TAG directive is not supported", "no directive")

    def _start(self, event: yaml.CollectionStartEvent, container: dict[str, JsonValue] | list[JsonValue]) -> None:
        self._check_properties(event)
        if len(self._open) >= self.limits.max_depth:
            refuse_depth(self.limits)
        parent = self._open[-1] if self._open else None
        if parent and isinstance(parent.container, dict) and parent.key is None:
            self._refuse(event, "InvalidKey", "a mapping or sequence is used as a key", "a string")
            refuse_all(self.problems)
        self._open.append(_Open(container, parent.place() if parent else ""))

    def _end(self) -> None:
        closed = self._open.pop()
        self._store(closed.container)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._check_properties(event)
        top = self._open[-1] if self._open else None
        if top and isinstance(top.container, dict) and top.key is None:
            top.key = self._read_key(event, top)
            return
        self._add(event, self._read(event))

    def _add(self, event: yaml.Event, value: JsonValue) -> None:
        top = self._open[-1] if self._open else None
        if top and isinstance(top.container, dict) and top.key is None:
            top.key = f"line {_line(event)}"
            return
        self._store(value)

    def _store(self, value: JsonValue) -> None:
        self._values += 1
        if self._values > self.limits.max_values:
            refuse_values(self.limits)
        if not self._open:
            if value is not None:
                self.documents.append(value)
            return
        top = self._open[-1]
        if isinstance(top.container, list):
            top.container.append(value)
        elif top.key is not None:
            top.container[top.key] = value
            top.key = None

    def _read_key(self, event: yaml.ScalarEvent, top: _Open) -> str:
        self._keys += 1
        if self._keys > self.limits.max_keys:
            refuse_keys(self.limits)
        if event.implicit[0] and event.value == "<<":
            self._refuse(event, "MergeKeyNotSupported", "a merge key (<<) is not supported", "the keys themselves")
            return event.value
        key = self._read(event)
        if not isinstance(key, str):
            if key is not None or event.value in _CONSTANTS:
                quoted = shorten(event.value)
                self._refuse(event, "InvalidKey", f"the key {quoted} is not a string", f'"{quoted}" in quotes')
            key = event.value
        if key in top.container:
            pointer = pointer_to(top.pointer, key)
            self._refuse(event, "DuplicateKey", "the key is given more than once", "each key once", pointer)
        return key

    def _read(self, event: yaml.ScalarEvent) -> JsonValue:
        pointer = self._open[-1].place() if self._open else ""
        if not event.implicit[0]:
            check_text(event.value, pointer, self.problems)
            return str(event.value)
        return self._read_plain(event, event.value, pointer)

    def _read_plain(self, event: yaml.ScalarEvent, text: str, pointer: str) -> JsonValue:
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if text in _NORWAY:
            meant = "true" if text.lower() in {"y", "yes", "on"} else "false"
            detail = f"{text} is a boolean to some readers and a word to others"
            self._refuse(event, "AmbiguousScalar", detail, f'{meant}, or "{text}" in quotes')
            return None
        if text[0] not in _MAYBE_NUMBER:
            check_text(text, pointer, self.problems)
            return text
        if _AMBIGUOUS_NUMBER.fullmatch(text):
            quoted = shorten(text)
            detail = f"{quoted} is read as different numbers, or as a word, by different readers"
            self._refuse(event, "AmbiguousScalar", detail, f'a plain decimal number, or "{quoted}" in quotes')
            return None
        return self._read_number(event, text, pointer)

    def _read_number(self, event: yaml.ScalarEvent, text: str, pointer: str) -> JsonValue:
        if _NOT_FINITE.fullmatch(text):
            self._refuse(event, "NotANumber", f"{text} has no JSON form", f'a finite number, or "{text}" in quotes')
            return None
        is_int = _INT.fullmatch(text) or _HEX.fullmatch(text)
        if not is_int and not _FLOAT.fullmatch(text):
            check_text(text, pointer, self.problems)
            return text
        if len(text) > MAX_NUMBER_LENGTH:
            accepted = f"at most {MAX_NUMBER_LENGTH} characters"
            self._refuse(event, "NumberTooLong", "a number has too many digits", accepted)
            return None
        if is_int:
            integer = int(text, 16 if text.startswith("0x") else 10)
            check_int(integer, pointer, self.problems)
            return integer
        number = float(text)
        if not math.isfinite(number):
            self._refuse(
                event, "OutOfRange", "the number is too large", f'a finite 64-bit float, or "{text}" in quotes'
            )
        return number

    def _check_properties(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.anchor is not None:
            self._refuse(event, "AnchorNotSupported", "an anchor (&) is not supported", "the value alone")
        if event.tag is not None:
            self._refuse(event, "TagNotSupported", "a tag (!) is not supported", "the value alone")

    def _refuse(self, event: yaml.Event, code: str, detail: str, accepted: str, pointer: str | None = None) -> None:
        if pointer is None:
            pointer = self._open[-1].place() if self._open else ""
        self.problems.add(pointer, code, f"line {_line(event)}: {detail}", accepted)

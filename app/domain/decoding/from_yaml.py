"""Decodes YAML like kubectl. The values are built from the events of the parser, so every step has bounded cost.

Scalars follow the rules of `yaml_scalars`. An alias is replaced by a copy of the anchored value, and every copied
value, key and character counts against the limits. A merge key (<<) takes effect at its position: keys after it
override the merged ones, which override keys before it.

The decoder is stricter than kubectl: it refuses duplicate keys, tags other than !!str, and numbers beyond 64 bits.
"""

from dataclasses import dataclass, field
from typing import Any

import yaml

from app.domain.decoding.values import (
    DEFAULT_LIMITS,
    DecodingLimits,
    JsonValue,
    check_int,
    check_text,
    refuse,
    refuse_all,
    refuse_depth,
    refuse_keys,
    refuse_values,
    utf8_text,
)
from app.domain.decoding.yaml_mistakes import (
    KEEP_NEWLINES,
    RENDER,
    REPLACE_TABS,
    is_indented_by_tab,
    is_template,
    lost_newlines,
)
from app.domain.decoding.yaml_scalars import NotJsonError, resolve
from app.domain.errors import Problems, pointer_to, shorten

_PIECE = 16 * 1024  # characters
# libyaml parses many times faster, but PyYAML may be built without it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_STRING_TAGS = ("!", "tag:yaml.org,2002:str")
_MERGE_KEY = "<<"


def decode_yaml(body: bytes, *, limits: DecodingLimits = DEFAULT_LIMITS) -> tuple[JsonValue, ...]:
    """Decode a stream of documents, or raise MalformedDocument with its errors. Empty documents are dropped."""
    text = utf8_text(body)
    problems = Problems()
    builder = _Builder(limits=limits, problems=problems)
    try:
        loader = _LOADER(_Pieces(text))
        try:
            while loader.check_event() and not problems.full:
                builder.accept(loader.get_event())
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        if not problems:
            refuse("MalformedYaml", *_describe(error, text))
    if problems:
        refuse_all(problems)
    if not builder.documents:
        accepted = KEEP_NEWLINES if lost_newlines(text) else "at least one document"
        refuse("EmptyBody", "the body contains no document", accepted)
    return tuple(builder.documents)


class _Pieces:
    """A stream that gives the parser the text in pieces.

    One call into C would block all other threads until its end.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def read(self, _: int) -> str:
        piece = self._text[self._place : self._place + _PIECE]
        self._place += len(piece)
        return piece


def _describe(error: yaml.YAMLError, text: str) -> tuple[str, str]:
    """Return what is wrong and what is accepted. For the common mistakes, this names the next step."""
    if lost_newlines(text):
        return "line 1: the body is a single line, so its newlines are lost", KEEP_NEWLINES
    if not (isinstance(error, yaml.MarkedYAMLError) and error.problem_mark):
        return shorten(str(getattr(error, "reason", error))), "YAML"
    line, column = error.problem_mark.line, error.problem_mark.column
    where = f"line {line + 1}, column {column + 1}"
    if is_indented_by_tab(text, line):
        return f"{where}: the line is indented with a tab", REPLACE_TABS
    return f"{where}: {error.problem}", RENDER if is_template(text) else "YAML"


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


@dataclass(slots=True)
class _Open:
    """A mapping or sequence that has not ended yet.

    `key` is the key of the next value of a mapping. `written` are the keys of the mapping itself, without merged ones.
    `merges` says that the next value is that of a merge key.
    """

    container: dict[str, JsonValue] | list[JsonValue]
    pointer: str
    anchor: str | None = None
    key: str | None = None
    written: set[str] = field(default_factory=set)
    merges: bool = False

    def place(self) -> str:
        if isinstance(self.container, list):
            return f"{self.pointer}/{len(self.container)}"
        return self.pointer if self.key is None else pointer_to(self.pointer, self.key)

    @property
    def awaits_key(self) -> bool:
        return isinstance(self.container, dict) and self.key is None


@dataclass(slots=True, kw_only=True)
class _Builder:
    limits: DecodingLimits
    problems: Problems
    documents: list[JsonValue] = field(default_factory=list)
    _open: list[_Open] = field(default_factory=list)
    _anchors: dict[str, JsonValue] = field(default_factory=dict)
    _keys: int = 0
    _values: int = 0
    _repeated: int = 0
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
                self._end(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.DocumentStartEvent():
                self._start_document(event)

    def _start_document(self, event: yaml.DocumentStartEvent) -> None:
        self._documents_seen += 1
        self._anchors.clear()
        if self._documents_seen > self.limits.max_documents:
            refuse("TooManyDocuments", "there are too many documents", f"at most {self.limits.max_documents}")
        if event.tags:
            self._refuse(event, "TagNotSupported", "a %TAG directive is not supported", "no directive")

    def _start(self, event: yaml.CollectionStartEvent, container: dict[str, JsonValue] | list[JsonValue]) -> None:
        if event.tag is not None:
            self._refuse(event, "TagNotSupported", "a tag (!) is not supported here", "the value alone")
        if len(self._open) >= self.limits.max_depth:
            refuse_depth(self.limits)
        parent = self._open[-1] if self._open else None
        if parent and parent.awaits_key:
            # Two braces, with which an expression of Helm or Jinja begins, are two flow mappings.
            accepted = RENDER if isinstance(container, dict) and event.flow_style else "a string"
            self._refuse(event, "InvalidKey", "a mapping or sequence is used as a key", accepted)
            refuse_all(self.problems)
        self._open.append(_Open(container, parent.place() if parent else "", event.anchor))

    def _end(self, event: yaml.Event) -> None:
        closed = self._open.pop()
        if closed.anchor is not None:
            self._anchors[closed.anchor] = closed.container
        self._store(event, closed.container)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        top = self._open[-1] if self._open else None
        # Only a plain << merges. In quotes it is an ordinary key.
        if top and top.awaits_key and event.implicit[0] and event.value == _MERGE_KEY:
            top.key, top.merges = _MERGE_KEY, True
            return
        value = self._read(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        self._place(event, value, shorten(event.value))

    def _alias(self, event: yaml.AliasEvent) -> None:
        name = event.anchor or ""
        if any(level.anchor == name for level in self._open):
            self._refuse(event, "InvalidAlias", f"the anchor {name} contains itself", "a value without itself")
            refuse_all(self.problems)
        if name not in self._anchors:
            self._refuse(event, "InvalidAlias", f"there is no anchor {name}", "an anchor (&) of this document")
        self._place(event, self._copy(self._anchors.get(name), len(self._open)), f"*{name}")

    def _copy(self, value: JsonValue, depth: int) -> JsonValue:
        """Return a copy of an anchored value. Everything that is copied counts against the limits."""
        if isinstance(value, str):
            self._repeat(value)
        if not isinstance(value, dict | list):
            return value
        if depth >= self.limits.max_depth:
            refuse_depth(self.limits)
        if isinstance(value, list):
            return [self._count(self._copy(item, depth + 1)) for item in value]
        for key in value:
            self._count_key()
            self._repeat(key)
        return {key: self._count(self._copy(item, depth + 1)) for key, item in value.items()}

    def _repeat(self, text: str) -> None:
        self._repeated += len(text)
        if self._repeated > self.limits.max_repeated:
            refuse(
                "AliasesTooLarge",
                "the aliases (*) repeat too much text",
                f"at most {self.limits.max_repeated} characters in all copies",
            )

    def _count(self, value: JsonValue) -> JsonValue:
        self._values += 1
        if self._values > self.limits.max_values:
            refuse_values(self.limits)
        return value

    def _count_key(self) -> None:
        self._keys += 1
        if self._keys > self.limits.max_keys:
            refuse_keys(self.limits)

    def _place(self, event: yaml.Event, value: JsonValue, quoted: str) -> None:
        """Use a scalar or an alias as a key or as a value. `quoted` is its text, for error messages."""
        top = self._open[-1] if self._open else None
        if top and top.awaits_key:
            top.key = self._key(event, top, value, quoted)
        else:
            self._store(event, value)

    def _store(self, event: yaml.Event, value: JsonValue) -> None:
        self._count(value)
        if not self._open:
            # kubectl skips an empty document, such as one between two ---.
            if value is not None:
                self.documents.append(value)
            return
        top = self._open[-1]
        if isinstance(top.container, list):
            top.container.append(value)
        elif top.merges:
            self._merge(event, top.container, value)
            top.key, top.merges = None, False
        elif top.key is not None:
            top.container[top.key] = value
            top.key = None

    def _merge(self, event: yaml.Event, target: dict[str, JsonValue], value: JsonValue) -> None:
        """Merge one or several mappings into the target. The first mapping that has a key provides its value."""
        sources = value if isinstance(value, list) else [value]
        for source in reversed(sources):
            if not isinstance(source, dict):
                accepted = "a mapping, or a sequence of mappings"
                self._refuse(event, "InvalidMerge", "a merge key (<<) has another value", accepted)
                return
            target.update(source)

    def _key(self, event: yaml.Event, top: _Open, value: JsonValue, quoted: str) -> str:
        """Return the key as kubectl writes it into JSON: an integer in decimal, a boolean as true or false."""
        self._count_key()
        if isinstance(value, bool):
            key = "true" if value else "false"
        elif isinstance(value, str | int):
            key = str(value)
        else:
            key = quoted
            self._refuse(event, "InvalidKey", f"the key {quoted} is not a string", f'"{quoted}" in quotes')
        if key in top.written:
            pointer = pointer_to(top.pointer, key)
            self._refuse(event, "DuplicateKey", "the key is given more than once", "each key once", pointer)
        top.written.add(key)
        return key

    def _read(self, event: yaml.ScalarEvent) -> JsonValue:
        is_string = event.tag in _STRING_TAGS
        if event.tag is not None and not is_string:
            self._refuse(event, "TagNotSupported", "a tag (!) is not supported here", "the value alone, or !!str")
        value: JsonValue = str(event.value)
        if event.implicit[0] and not is_string:
            try:
                value = resolve(event.value)
            except NotJsonError as error:
                self._refuse(event, error.code, error.detail, error.accepted)
                return None
        pointer = self._open[-1].place() if self._open else ""
        if isinstance(value, str):
            check_text(value, pointer, self.problems)
        elif isinstance(value, int):
            check_int(value, pointer, self.problems)
        return value

    def _refuse(self, event: yaml.Event, code: str, detail: str, accepted: str, pointer: str | None = None) -> None:
        if pointer is None:
            pointer = self._open[-1].place() if self._open else ""
        self.problems.add(pointer, code, f"line {_line(event)}: {detail}", accepted)

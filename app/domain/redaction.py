"""Removes secrets from the manifest of an object, and from every text that was recorded about it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

import msgspec

from app.domain import vocabulary

REDACTED: Final = "<redacted>"
EVERY_VARIABLE: Final = "*"
SHORTEST: Final = 6
"""Characters of the shortest text that is removed wherever it occurs. A shorter one is part of many other words."""

# Names of fields consist of letters, so a key with this text is one that a user chose.
_FIELD_NAME: Final = re.compile(r"[A-Za-z]+")
_WORDS: Final = frozenset(
    str(word)
    for words in vars(vocabulary).values()
    if isinstance(words, type) and issubclass(words, StrEnum)
    for word in words
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSelection:
    """What to remove.

    Args:
        env: names of environment variables, whose values are removed; EVERY_VARIABLE stands for all.
        fields: JSON pointers into the manifest. Each text at or below one of them is removed.
        texts: removed wherever they occur.
    """

    env: frozenset[str] = frozenset()
    fields: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


def is_needed(text: str) -> bool:
    """Return whether the text is part of a word of the wire format, without which records cannot be read."""
    return text in REDACTED or any(text in word for word in _WORDS)


def is_redacted(document: Any) -> bool:
    """Return whether something was removed from the document."""
    return REDACTED in msgspec.json.encode(document).decode()


@dataclass(frozen=True, kw_only=True)
class Redaction:
    """Removes the selected values from documents, and `texts` from everything."""

    selection: SecretSelection
    texts: tuple[str, ...]

    @classmethod
    def of(cls, selection: SecretSelection, documents: Sequence[Any]) -> "Redaction":
        """Return the redaction of an object with these documents.

        A value that a name or a pointer selects is removed wherever it occurs, such as in logs, if it is long enough.
        Those of all variables are removed in place only, because most of them are no secrets.
        """
        found = list(selection.texts)
        for document in documents:
            found += _values(document, SecretSelection(env=selection.env - {EVERY_VARIABLE}, fields=selection.fields))
        return cls(selection=selection, texts=tuple(_with_forms(found)))

    @property
    def reaches_records(self) -> bool:
        """Whether anything but the manifest can change."""
        return bool(self.texts)

    def document(self, value: Any) -> Any:
        """Return a manifest, or a view that contains one, without the selected values."""
        return _change(value, self.selection, "", self.text, is_manifest=True)

    def record(self, value: Any) -> Any:
        """Return another JSON value without the texts. Its keys are names of fields."""
        return _change(value, SecretSelection(), "", self.text, is_manifest=False) if self.texts else value

    def text(self, value: str) -> str:
        return self._pattern.sub(REDACTED, value) if self.texts else value

    def data(self, value: bytes) -> bytes:
        return self._byte_pattern.sub(REDACTED.encode(), value) if self.texts else value

    def answer(self, value: Any, uid: str) -> Any:
        """Return a stored answer without the selected values of the object with this uid. It may have other objects."""
        if isinstance(value, dict):
            if value.get("uid") == uid:
                return self.document(value)
            return {key: self.answer(item, uid) for key, item in value.items()}
        return [self.answer(item, uid) for item in value] if isinstance(value, list) else value

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self.texts)))

    @cached_property
    def _byte_pattern(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(re.escape(text.encode()) for text in self.texts))


def json_form(text: str) -> str:
    """Return the text as it appears inside a JSON string."""
    return msgspec.json.encode(text).decode()[1:-1]


def _with_forms(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts, their lines, because logs are kept as lines, and both as inside a JSON string; longest first."""
    forms = {form for text in texts for line in (text, *text.splitlines()) for form in (line, line.strip())}
    forms |= {json_form(form) for form in forms}
    yield from sorted((form for form in forms if len(form) >= SHORTEST and not is_needed(form)), key=len, reverse=True)


def _values(document: Any, selection: SecretSelection) -> list[str]:
    """Return the texts that the names and pointers of a selection select."""
    found: list[str] = []

    _change(document, selection, "", lambda text: text, is_manifest=True, collect=found.append)
    return found


def _change(
    value: Any,
    selection: SecretSelection,
    pointer: str,
    text: Callable[[str], str],
    *,
    is_manifest: bool,
    collect: Callable[[str], None] = lambda _: None,
) -> Any:
    """Return the JSON value with REDACTED in place of each selected text, which `collect` gets, and others changed."""

    def within(item: Any, step: str | int) -> Any:
        return walk(item, f"{pointer}/{_escape(step)}")

    def walk(item: Any, at: str) -> Any:
        return _change(item, selection, at, text, is_manifest=is_manifest, collect=collect)

    def remove(item: str) -> str:
        if not item:
            return item
        if item != REDACTED:
            collect(item)
        return REDACTED

    if isinstance(value, str):
        return remove(value) if _is_at(pointer, selection.fields) else text(value)
    if isinstance(value, list):
        return [within(item, index) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    changed = {_key(key, text) if is_manifest else key: within(item, key) for key, item in value.items()}
    if selection.env and isinstance(value.get("env"), list):
        changed["env"] = [
            {**new, "value": remove(old["value"])} if _is_variable(old, selection.env) else new
            for old, new in zip(value["env"], changed["env"], strict=True)
        ]
    return changed


def _is_at(pointer: str, fields: Sequence[str]) -> bool:
    return any(pointer == field or pointer.startswith(f"{field}/") for field in fields)


def _escape(step: str | int) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


def _key(key: str, text: Callable[[str], str]) -> str:
    return key if _FIELD_NAME.fullmatch(key) else text(key)


def _is_variable(item: Any, names: frozenset[str]) -> bool:
    """Return whether the item is a selected variable with a value. One with `valueFrom` contains no secret."""
    return (
        isinstance(item, Mapping)
        and isinstance(item.get("value"), str)
        and (EVERY_VARIABLE in names or item.get("name") in names)
    )

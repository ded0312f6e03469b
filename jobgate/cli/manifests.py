"""Manifests of `-f`: their documents, the changes of `--name` and `--set`, and the lines of their fields. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
SUFFIXES: Final = (".yaml", ".yml", ".json")


class ManifestError(ValueError):
    """A file or an option cannot be read as a manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One manifest of a file. `text` is what the file contains, and `first_line` is where it begins."""

    source: str
    text: str
    first_line: int = 1
    is_changed: bool = False

    @property
    def content(self) -> Any:
        try:
            return yaml.safe_load(self.text)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = self.first_line + mark.line if mark else self.first_line
            problem = getattr(error, "problem", None) or "it is not YAML"
            if "'\\t'" in problem:
                problem = "the line begins with a tab; accepted: spaces"
            raise ManifestError(f"{self.source}:{line}: {problem}") from None
        except ValueError as error:  # such as a date that does not exist
            raise ManifestError(f"{self.source}:{self.first_line}: {error}") from None

    def line_of(self, pointer: str) -> int | None:
        """Return the line of a field, or of its nearest ancestor that the document has."""
        if self.is_changed:
            return None
        try:
            node = yaml.compose(self.text, Loader=yaml.SafeLoader)
        except yaml.YAMLError:
            return None
        return None if node is None else self.first_line + _line(node, _segments(pointer))


def documents(source: str, text: str) -> list[Document]:
    """Return the documents of a file, without empty ones."""
    found: list[Document] = []
    start = 0
    for match in [*_SEPARATOR.finditer(text), None]:
        end = match.start() if match else len(text)
        part = text[start:end]
        if any(line.strip() and not line.lstrip().startswith("#") for line in part.splitlines()):
            found.append(Document(source=source, text=part, first_line=text.count("\n", 0, start) + 1))
        start = match.end() if match else end
    return found


def changed(document: Document, name: str | None, settings: Sequence[str]) -> Document:
    """Return the document with another name and with the values of `--set`."""
    if name is None and not settings:
        return document
    content = document.content
    if not isinstance(content, dict):
        raise ManifestError(f"{document.source}: it is no manifest, which is a mapping")
    pairs = [setting.partition("=") for setting in settings]
    if name is not None:
        content["metadata"] = content.get("metadata") or {}
        if isinstance(content["metadata"], dict):
            content["metadata"].pop("generateName", None)
        pairs.append(("metadata.name", "=", name))
    for path, equals, value in pairs:
        if not equals:
            raise ManifestError(f"--set {path}: it has no value; accepted: path=value, as spec.replicas=2")
        _set(content, path, name if path == "metadata.name" and value == name else _value(path, value))
    return Document(
        source=document.source,
        text=yaml.safe_dump(content, sort_keys=False),
        first_line=document.first_line,
        is_changed=True,
    )


def _value(path: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        raise ManifestError(f"--set {path}: {text} is not YAML; accepted: a value, such as 2, true or [a, b]") from None


def _set(content: Any, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for index, part in enumerate(parents):
        content = _child(content, part, ".".join(parents[: index + 1]))
    if isinstance(content, list):
        content[_index(content, last, path)] = value
    elif isinstance(content, dict):
        content[last] = value
    else:
        raise ManifestError(f"--set {path}: {'.'.join(parents)} is a value, which has no fields")


def _child(content: Any, part: str, path: str) -> Any:
    if isinstance(content, list):
        return content[_index(content, part, path)]
    if isinstance(content, dict):
        return content.setdefault(part, {})
    raise ManifestError(f"--set {path}: the part before {part} is a value, which has no fields")


def _index(items: Sequence[Any], part: str, path: str) -> int:
    if not part.isdecimal() or int(part) >= len(items):
        accepted = f"0 to {len(items) - 1}" if items else "nothing, because the list is empty"
        raise ManifestError(f"--set {path}: {part} is no index of the list; accepted: {accepted}")
    return int(part)


def _segments(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _line(node: yaml.Node, segments: Sequence[str]) -> int:
    """Return the line of the field below the node, counted from 0."""
    line = node.start_mark.line
    for segment in segments:
        found: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == segment:
                    line, found = key.start_mark.line, value
        elif isinstance(node, yaml.SequenceNode) and segment.isdecimal() and int(segment) < len(node.value):
            found = node.value[int(segment)]
            line = found.start_mark.line
        if found is None:
            return line
        node = found
    return line


def kind_of(content: Any) -> object:
    return content.get("kind") if isinstance(content, Mapping) else None

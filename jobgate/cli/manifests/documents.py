"""Manifests of `-f`: their documents, the changes of `--name` and `--set`, and the lines of their fields. Pure."""

import re
from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Final

import yaml

from jobgate.cli.manifests.verbatim_yaml import compose, field, is_null, serialize, string, with_field, without_field

_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
# An expression of Helm or Jinja as a value or at the begin of a line.
_TEMPLATE: Final = re.compile(r"^\s*(?:- )?(?:[\w./-]+:)? *(?:\{\{|\{%)", re.MULTILINE)
_EXPRESSION: Final = re.compile(r"\{\{|\{%")
# A variable of envsubst, Make, Windows or a form in a value that has no blanks beside it.
_VARIABLE: Final = re.compile(r"^\S*?(\$\{[^}]*\}|\$\(\w+\)|\$\w+|<[\w .-]+>|%\w+%|@\w+@)\S*$")
# Those of them that make a document no YAML, within braces or at the beginning of a value.
_BREAKING_VARIABLE: Final = re.compile(r"\$\{[^}]*\}|%\w+%|@\w+@")
_LIST: Final = re.compile(r"""\bkind["']?\s*:\s*["']?\w*List\b""")
_OF_REQUEST: Final = ("/path/", "/query/", "/header/")  # where pointers begin that name no field of a manifest
RENDER: Final = "it is a template: render it first, for example with `helm template CHART | jobgate submit -f -`"
SUFFIXES: Final = (".yaml", ".yml", ".json")


class ManifestError(ValueError):
    """A file or an option cannot be read as a manifest."""


def _fill_in(variable: str) -> str:
    return (
        f"{variable} looks like a variable that was not replaced: render the file first, for example with "
        "`envsubst < FILE | jobgate submit -f -`"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One manifest of a file. `text` is what the file contains, and `first_line` is where it begins.

    Of an item of a List, `text` is the item alone, and `item` has its lines in the document from `first_line` on.
    """

    source: str
    text: str
    first_line: int = 1
    is_changed: bool = False
    item: yaml.Node | None = None

    @property
    def root(self) -> yaml.Node:
        try:
            return compose(self.text)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = self.first_line + mark.line if mark else self.first_line
            problem = getattr(error, "problem", None) or "it is not YAML"
            if "'\\t'" in problem:
                problem = "the line begins with a tab; accepted: spaces"
            at = self.text.splitlines()[mark.line : mark.line + 1] if mark else []
            hint = ""
            if self.is_template or any(map(_EXPRESSION.search, at)):
                hint = f"\n  {RENDER}"
            elif variable := next(filter(None, map(_BREAKING_VARIABLE.search, at)), None):
                hint = f"\n  {_fill_in(variable[0])}"
            raise ManifestError(f"{self.source}:{line}: {problem}{hint}") from None

    @property
    def kind(self) -> str | None:
        return self._text_at("kind")

    @property
    def shown(self) -> str:
        """The kind and the name, for messages."""
        return f"{self.kind or 'a document without a kind'} {self._text_at('metadata', 'name') or ''}".rstrip()

    def _text_at(self, *path: str) -> str | None:
        node: yaml.Node | None = self.root
        for name in path:
            node = field(node, name) if isinstance(node, yaml.MappingNode) else None
        return node.value if isinstance(node, yaml.ScalarNode) else None

    @property
    def is_template(self) -> bool:
        """Whether it has expressions of Helm or Jinja, which are text only in quotes and in blocks."""
        return _TEMPLATE.search(self.text) is not None

    def hint(self, pointers: Sequence[str]) -> str | None:
        """Return what to do if one of these fields, which the gateway refuses, was not filled in."""
        if self.is_template:
            return RENDER
        for pointer in pointers:
            node = _node(self.root, _segments(pointer))
            if isinstance(node, yaml.ScalarNode) and (match := _VARIABLE.match(node.value)):
                return _fill_in(match[1])
        return None

    def items(self) -> Iterator["Document"]:
        """Yield the manifests of a List, as kubectl and kustomize write it; otherwise the document itself."""
        root = self.root if _LIST.search(self.text) else None
        listed = field(root, "items") if isinstance(root, yaml.MappingNode) else None
        if not isinstance(listed, yaml.SequenceNode) or not (self.kind or "").endswith("List"):
            yield self
            return
        for item in listed.value:
            # A copy, because items can share nodes by aliases, and the text of a node changes the node.
            text = serialize(deepcopy(item))
            yield from Document(source=self.source, text=text, first_line=self.first_line, item=item).items()

    def line_of(self, pointer: str) -> int | None:
        """Return the line of a field, or of its nearest ancestor that the document has."""
        if self.is_changed or pointer.startswith(_OF_REQUEST):
            return None
        try:
            root = self.item or self.root
        except ManifestError:
            return None
        return self.first_line + _line(root, _segments(pointer))


def documents(source: str, text: str) -> list[Document]:
    """Return the manifests of a file: its documents without empty ones, and the items of a List instead of the List."""
    found: list[Document] = []
    start = 0
    for match in [*_SEPARATOR.finditer(text), None]:
        end = match.start() if match else len(text)
        part = text[start:end]
        if any(line.strip() and not line.lstrip().startswith("#") for line in part.splitlines()):
            found += Document(source=source, text=part, first_line=text.count("\n", 0, start) + 1).items()
        start = match.end() if match else end
    return found


def own(found: Sequence[Document], kinds: Collection[str], *, skips: bool) -> tuple[list[Document], list[Document]]:
    """Return the documents whose kinds are those of a gateway, and the others, such as a ConfigMap beside its job.

    A single document passes, because the gateway explains best what is wrong with its kind.

    Raises:
        ManifestError: there are others beside those of the gateway, and they are not skipped.
    """
    mine = [document for document in found if document.kind is None or document.kind in kinds]
    foreign = [document for document in found if document not in mine]
    if not foreign or (len(found) == 1 and not skips):
        return list(found), []
    if skips:
        return mine, foreign
    names = ", ".join(document.shown for document in mine) or "none"
    others = ", ".join(document.shown for document in foreign)
    raise ManifestError(
        f"{foreign[0].source}: jobgate has no kind of these documents: {others}; its own: {names}\n"
        "  apply the others with kubectl, and submit with --skip-foreign"
    )


def with_changes(document: Document, name: str | None, settings: Sequence[str]) -> Document:
    """Return the document with another name and with the values of `--set`. All other scalars stay as written."""
    if name is None and not settings:
        return document
    root = document.root
    if not isinstance(root, yaml.MappingNode):
        raise ManifestError(f"{document.source}: it is no manifest, which is a mapping")
    changes = [_change(setting) for setting in settings]
    if name is not None:
        metadata = field(root, "metadata")
        if isinstance(metadata, yaml.MappingNode):
            root = with_field(root, "metadata", without_field(metadata, "generateName"))
        changes.append(("metadata.name", string(name)))
    for path, value in changes:
        root = _replace(root, path, value)
    return Document(source=document.source, text=serialize(root), first_line=document.first_line, is_changed=True)


def _change(setting: str) -> tuple[str, yaml.Node]:
    """Return the path and the value of a `--set`."""
    path, equals, text = setting.partition("=")
    if not equals:
        raise ManifestError(f"--set {path}: it has no value; accepted: path=value, as spec.replicas=2")
    try:
        return path, compose(text)
    except yaml.YAMLError:
        raise ManifestError(f"--set {path}: {text} is not YAML; accepted: a value, such as 2, true or [a, b]") from None


def _replace(node: yaml.Node | None, path: str, value: yaml.Node, depth: int = 0) -> yaml.Node:
    """Return a node with another value at a path, whose first `depth` parts lead to the node.

    Nodes of the path are copied, because aliases of them keep their value.
    """
    parts = path.split(".")
    if depth == len(parts):
        return value
    part = parts[depth]
    if isinstance(node, yaml.SequenceNode):
        index = _index(node.value, part, path)
        new = _replace(node.value[index], path, value, depth + 1)
        return yaml.SequenceNode(node.tag, [*node.value[:index], new, *node.value[index + 1 :]])
    if node is None or is_null(node):
        node = yaml.MappingNode("tag:yaml.org,2002:map", [])
    if isinstance(node, yaml.MappingNode):
        return with_field(node, part, _replace(field(node, part), path, value, depth + 1))
    raise ManifestError(f"--set {path}: {'.'.join(parts[:depth])} is a value, which has no fields")


def _index(items: Sequence[yaml.Node], part: str, path: str) -> int:
    if not part.isdecimal() or int(part) >= len(items):
        accepted = f"0 to {len(items) - 1}" if items else "nothing, because the list is empty"
        raise ManifestError(f"--set {path}: {part} is no index of the list; accepted: {accepted}")
    return int(part)


def _segments(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _node(root: yaml.Node, segments: Sequence[str]) -> yaml.Node | None:
    """Return the value of a field below the root, if it is there."""
    node: yaml.Node | None = root
    for segment in segments:
        if isinstance(node, yaml.MappingNode):
            node = field(node, segment)
        elif isinstance(node, yaml.SequenceNode) and segment.isdecimal() and int(segment) < len(node.value):
            node = node.value[int(segment)]
        else:
            return None
    return node


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

"""The fields of JSON documents by schemas and examples, and the fields that a page of the documentation names."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

FENCE: Final = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN: Final = re.compile(r"`([^`\n]+)`")
# `pendingReasons`, `status.reason`, `errors[].pointer`, also with a value: `hostUsers: false`.
PATH: Final = re.compile(r"([a-z]\w*(?:\[\w*\])?(?:\.[A-Za-z]\w*(?:\[\w*\])?)*)(?:: .+)?")
KEY: Final = re.compile(r'"(\w+)"\s*:')
JQ: Final = re.compile(r"\bjq\b[^'\n]*'([^']*)'")
JQ_PATH: Final = re.compile(r"\.([A-Za-z_]\w*(?:\[[^\]]*\])?(?:\.[A-Za-z_]\w*(?:\[[^\]]*\])?)*)")
TEXT: Final = re.compile(r'"[^"\n]*"')
FILE: Final = re.compile(r".*\.(json|md|py|sh|yaml)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """A set of fields. `children` are the fields of each field. A field of `maps` has children of any name."""

    names: set[str] = field(default_factory=set)
    children: dict[str, set[str]] = field(default_factory=dict)
    maps: set[str] = field(default_factory=set)

    def add(self, name: str, children: Iterator[str] | set[str] | Mapping[str, Any]) -> None:
        self.names.add(name)
        self.children.setdefault(name, set()).update(children)

    def __or__(self, other: "Fields") -> "Fields":
        both = Fields(names=self.names | other.names, maps=self.maps | other.maps)
        for one in (self, other):
            for name, children in one.children.items():
                both.add(name, children)
        return both

    def has(self, path: tuple[str, ...]) -> bool:
        """Whether a document has the first field, and each further field in the one before it.

        Users choose the names in a map, so the check of the path ends there.
        """
        if path[0] not in self.names:
            return False
        for parent, child in pairwise(path):
            if child not in self.children.get(parent, ()):
                return parent in self.maps
        return True


def of_json_schema(document: Mapping[str, Any]) -> Fields:
    """The fields of all object schemas in a document with internal `$ref`s, such as an OpenAPI document."""
    fields = Fields()
    for schema in _mappings(document):
        properties = schema.get("properties")
        for name, value in properties.items() if isinstance(properties, Mapping) else ():
            if not isinstance(value, Mapping):
                continue
            fields.add(name, set())
            for variant in _variants(value, document):
                fields.add(name, variant.get("properties", {}))
                if isinstance(variant.get("additionalProperties"), Mapping):
                    fields.maps.add(name)
    return fields


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    nested = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for one in nested:
        yield from _mappings(one)


def _variants(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schemas that a value, or an item of a list, may have."""
    if "$ref" in schema:
        found: Any = document
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        yield from _variants(found, document)
    else:
        yield schema
    inner = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    for one in (*inner, *([schema["items"]] if isinstance(schema.get("items"), Mapping) else ())):
        yield from _variants(one, document)


def of_kubernetes(types: Mapping[str, Mapping[str, str]]) -> Fields:
    """The fields of the types in devcluster/formats/schema.json, which has the type of each field by its name."""
    fields = Fields()
    for properties in types.values():
        for name, written in properties.items():
            kind = written.removeprefix("[]").removeprefix("map:").partition("|")[0]
            fields.add(name, types.get(kind, {}))
            if written.startswith("map:"):
                fields.maps.add(name)
    return fields


def of_example(document: Any) -> Fields:
    """The fields of a document, or of a list of documents."""
    fields = Fields()
    for path in paths_of(document):
        fields.add(path[-1], set())
        for parent, child in pairwise(path):
            fields.add(parent, {child})
    return fields


def paths_of(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path to each field of a document, without indices."""
    if isinstance(value, list):
        for item in value:
            yield from paths_of(item, path)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield (*path, key)
            yield from paths_of(inner, (*path, key))


def named_on(page: str) -> Iterator[tuple[str, ...]]:
    """The paths of the JSON fields that a page in Markdown names.

    In a block of JSON every key is one, in other blocks each `"key":` and each path of a jq program. In the text, code
    names a field if it is JSON with keys, a path with a dot, or a word in camelCase; in a column with the head `field`,
    any word does.
    """
    for language, block in FENCE.findall(page):
        if language == "json":
            yield from (path for document in documents(block) for path in paths_of(document))
        else:
            yield from in_code(block)
    for line in FENCE.sub("", page).splitlines():
        for span in SPAN.findall(line):
            yield from in_code(span)
            match = PATH.fullmatch(span)
            if match and not FILE.fullmatch(span) and ("." in match[1] or re.search("[A-Z]", match[1])):
                yield split(match[1])
    yield from in_columns(page)


def documents(block: str) -> Iterator[Any]:
    """The JSON documents of a block, one after another."""
    decoder, rest = json.JSONDecoder(), block.strip()
    while rest:
        document, end = decoder.raw_decode(rest)
        yield document
        rest = rest[end:].strip()


def in_code(code: str) -> Iterator[tuple[str, ...]]:
    yield from ((key,) for key in KEY.findall(code))
    for program in JQ.findall(code):
        yield from (split(path) for path in JQ_PATH.findall(TEXT.sub("", program)))


def in_columns(page: str) -> Iterator[tuple[str, ...]]:
    column: int | None = None
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            column = None
        elif "field" in cells:
            column = cells.index("field")
        elif column is not None and column < len(cells):
            matches = map(PATH.fullmatch, SPAN.findall(cells[column]))
            yield from (split(match[1]) for match in matches if match)


def split(path: str) -> tuple[str, ...]:
    return tuple(re.sub(r"\[[^\]]*\]", "", path).split("."))

"""Access to the parts of an OpenAPI document."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

METHODS = {"get", "put", "post", "patch", "delete"}
COMMITTED = Path(__file__).parents[3] / "openapi" / "openapi.json"


def committed_document() -> dict[str, Any]:
    """Return the committed document. `tests/api/document/test_openapi.py` requires that it is current.

    Parameters of tests come from it, because every worker would need seconds to build the document.
    """
    document: dict[str, Any] = json.loads(COMMITTED.read_text(encoding="utf-8"))
    return document


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the method, path and operation of every operation."""
    for path, item in document["paths"].items():
        for method in METHODS & set(item):
            yield method, path, item[method]


def parameters(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every parameter with its place."""
    for method, path, operation in operations(document):
        for parameter in operation.get("parameters", ()):
            yield f"{method} {path} {parameter['name']}", parameter


def schemas(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema of the document with its place, the schemas inside schemas included."""
    for name, schema in document["components"]["schemas"].items():
        yield from _inside(schema, name)
    for place, parameter in parameters(document):
        yield from _inside(parameter["schema"], place)
    for method, path, operation in operations(document):
        place = f"{method} {path}"
        for media_type, part in operation.get("requestBody", {}).get("content", {}).items():
            yield from _inside(part["schema"], f"{place} {media_type}")
        for code, response in operation["responses"].items():
            for media_type, part in response.get("content", {}).items():
                yield from _inside(part["schema"], f"{place} {code} {media_type}")
            for header, described in response.get("headers", {}).items():
                yield from _inside(described["schema"], f"{place} {code} {header}")


def _inside(schema: dict[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield place, schema
    for name, child in schema.get("properties", {}).items():
        yield from _inside(child, f"{place}.{name}")
    for key in ("items", "additionalProperties", "contentSchema"):
        if isinstance(child := schema.get(key), dict):
            yield from _inside(child, f"{place}.{key}")
    for key in ("anyOf", "oneOf", "allOf"):
        for index, child in enumerate(schema.get(key, ())):
            yield from _inside(child, f"{place}.{key}.{index}")


def reached_by_answers(document: dict[str, Any]) -> set[str]:
    """Return the names of the component schemas that answers use, directly or through other schemas."""
    components = document["components"]["schemas"]
    found: set[str] = set()
    waiting = [
        part["schema"]
        for _, _, operation in operations(document)
        for response in operation["responses"].values()
        for part in response.get("content", {}).values()
    ]
    while waiting:
        for _, schema in _inside(waiting.pop(), ""):
            name = schema.get("$ref", "").rpartition("/")[2]
            if name and name not in found:
                found.add(name)
                waiting.append(components[name])
    return found

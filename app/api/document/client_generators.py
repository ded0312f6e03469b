"""Rewrites the schemas of the OpenAPI document into the forms that client generators read correctly.

Pydantic and FastAPI generate valid JSON schemas, but generators drop operations, overflow integers and define a name
twice because of some of them. The rules apply to every schema of the document, so a new route needs no care for them.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from app.api.document.field_descriptions import description
from app.api.views.closed_sets import SCHEMA_NAME

_INT32_MIN: Final = -(2**31)
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_PRIMITIVES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object"})
_METHODS: Final = frozenset({"get", "put", "post", "patch", "delete"})

Schema = dict[str, Any]


def adapt(document: dict[str, Any]) -> None:
    """Apply all rules to a complete document whose components have their final names."""
    _name_closed_sets(document)
    for path_item in document["paths"].values():
        for operation in _operations(path_item):
            for parameter in operation.get("parameters", ()):
                _omit_null(parameter["schema"])
    for name, schema in document["components"]["schemas"].items():
        _adapt(schema, name)
        schema["title"] = name  # some generators name types by title
    for name, schema in _inline_schemas(document):
        _adapt(schema, name)
    components = document["components"]
    components["schemas"] = dict(sorted(components["schemas"].items()))
    _describe_fields(components["schemas"])


def _describe_fields(components: dict[str, Schema]) -> None:
    """Add the descriptions of fields that their views do not describe."""
    for name, schema in components.items():
        for field, described in schema.get("properties", {}).items():
            if "description" not in described and (text := description(name, field)) is not None:
                described["description"] = text


def _name_closed_sets(document: dict[str, Any]) -> None:
    """Replace each closed set of values by a reference to one schema for all its fields."""
    components = document["components"]["schemas"]
    for schema in list(_all_schemas(document)):
        if (closed_set := schema.pop(SCHEMA_NAME, None)) is not None:
            name = closed_set["title"]
            components[name] = closed_set
            del schema["type"]
            schema["$ref"] = f"#/components/schemas/{name}"


def _all_schemas(document: dict[str, Any]) -> Iterator[Schema]:
    waiting = [*document["components"]["schemas"].values(), *(schema for _, schema in _inline_schemas(document))]
    while waiting:
        schema = waiting.pop()
        yield schema
        waiting.extend(child for _, child in _children(schema))


def _operations(path_item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (operation for method, operation in path_item.items() if method in _METHODS)


def _inline_schemas(document: dict[str, Any]) -> Iterator[tuple[str, Schema]]:
    """Yield the schemas of parameters, headers and bodies, each with a name that is unique in the document."""
    for path_item in document["paths"].values():
        for operation in _operations(path_item):
            base = _pascal(operation["operationId"])
            for parameter in operation.get("parameters", ()):
                yield base + _pascal(parameter["name"]), parameter["schema"]
            for part in operation.get("requestBody", {}).get("content", {}).values():
                yield base + "Body", part["schema"]
            for response in operation["responses"].values():
                for part in response.get("content", {}).values():
                    yield base + "Answer", part["schema"]
                for header, described in response.get("headers", {}).items():
                    yield base + _pascal(header), described["schema"]


def _adapt(schema: Schema, name: str) -> None:
    schema.pop("title", None)  # derived from the name of the field, which says the same
    _split_types(schema)
    if isinstance(schema.get("default"), dict) or ("default" in schema and schema["default"] is None):
        del schema["default"]  # generators write an object default as code that does not compile
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if "enum" in schema:
        schema.setdefault("type", "string")
        # oapi-codegen declares the values of all enumerations in one scope, and finds only some of the clashes.
        schema["x-enumNames"] = [name + (_pascal(str(value)) or "None") for value in schema["enum"]]
    if schema.get("type") == "integer" and "format" not in schema:
        schema["format"] = _integer_format(schema)
    if schema.get("maximum") == _INT64_MAX:
        del schema["maximum"]  # the format int64 has this maximum, which JavaScript cannot represent
    if schema.get("type") == "number":
        schema.setdefault("format", "double")
    _shorten_nullable(schema)
    if "anyOf" in schema or "oneOf" in schema:
        schema.pop("default", None)  # in Java, a union is a class, to which no literal can be assigned
    for part, child in _children(schema):
        _adapt(child, name + part)


def _children(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the schemas directly inside a schema. The suffix of each, after the schema's name, names it uniquely."""
    for name, child in schema.get("properties", {}).items():
        yield _pascal(name), child
    for key in ("items", "additionalProperties", "contentSchema"):
        if isinstance(child := schema.get(key), dict):
            yield "Item" if key != "contentSchema" else "", child
    for key in ("anyOf", "oneOf", "allOf"):
        for child in schema.get(key, ()):
            yield "", child


def _split_types(schema: Schema) -> None:
    """Replace `type: [integer, string]` by an `anyOf`. Client generators support only lists of one type and null."""
    if isinstance(types := schema.get("type"), list) and "null" not in types:
        del schema["type"]
        bounds = {key: schema.pop(key) for key in ("minimum", "maximum") if key in schema}
        schema["anyOf"] = [{"type": kind} | (bounds if kind == "integer" else {}) for kind in types]


def _integer_format(schema: Schema) -> str:
    """Return int32 if the bounds of the schema permit nothing else. Otherwise a generator must use 64 bits."""
    least, most = schema.get("minimum"), schema.get("maximum")
    fits = least is not None and most is not None and _INT32_MIN <= least <= most <= _INT32_MAX
    return "int32" if fits else "int64"


def _shorten_nullable(schema: Schema) -> None:
    """Replace `anyOf: [{type: string}, {type: null}]` by `type: [string, null]`, also for other primitive types.

    Client generators declare a class for each `anyOf`.
    """
    value = _value_or_null(schema)
    if value is not None and value.get("type") in _PRIMITIVES and "enum" not in value:
        del schema["anyOf"]
        for key, keyword in value.items():
            schema.setdefault(key, keyword)
        schema["type"] = [value["type"], "null"]
        if value["type"] == "integer":
            schema.setdefault("format", _integer_format(value))
        if value["type"] == "number":
            schema.setdefault("format", "double")


def _omit_null(schema: Schema) -> None:
    """Remove null from the schema of a parameter: an optional parameter is absent, and cannot be null."""
    value = _value_or_null(schema)
    if value is not None:
        del schema["anyOf"]
        schema.update({key: keyword for key, keyword in value.items() if key not in schema})


def _value_or_null(schema: Schema) -> Schema | None:
    """Return the first member of a union of one schema and null, else None."""
    members = schema.get("anyOf", ())
    values = [member for member in members if member != {"type": "null"}]
    return values[0] if len(values) == 1 and len(members) == 2 else None


def _pascal(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name))

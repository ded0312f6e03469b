"""The fields of a kind as `jobgate explain` shows them, from its JSON schema. Pure."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jobgate.client.types import Kind

Schema = Mapping[str, Any]
_WIDTH: Final = 96  # columns of a description
_INDENT: Final = "  "
_POD_TEMPLATE: Final = "io.k8s.api.core.v1.PodTemplateSpec"
# Bounds that only say that a number has 32 or 64 bits.
_LIMITS_OF_TYPES: Final = frozenset({2**31 - 1, 2**63 - 1, -(2**31), -(2**63)})


class FieldPathError(ValueError):
    """A path leads to no field. The message names the fields that exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One field of a kind."""

    path: tuple[str, ...]
    schema: Schema
    is_required: bool = False

    @property
    def name(self) -> str:
        return self.path[-1]


class KindSchema:
    """The schema of one kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._definitions: Mapping[str, Schema] = kind.json_schema.get("$defs", {})
        self._editable = [tuple(pointer.split("/")[1:]) for pointer in kind.mutable_fields]

    @property
    def root(self) -> Explained:
        return Explained(path=(), schema=self.kind.json_schema)

    def resolve(self, schema: Schema) -> Schema:
        """Return a schema without reference and without null. What stands beside the reference takes precedence."""
        for union in ("anyOf", "oneOf"):
            if union in schema:
                parts = [part for part in schema[union] if part.get("type") != "null"]
                rest = {key: value for key, value in schema.items() if key != union}
                return {**self.resolve(parts[0]), **rest} if len(parts) == 1 else schema
        if "$ref" in schema:
            target = self._definitions[schema["$ref"].rpartition("/")[2]]
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            return {**self.resolve(target), **rest}
        if isinstance(schema.get("type"), list):
            plain = [name for name in schema["type"] if name != "null"]
            return {**schema, "type": plain[0]} if len(plain) == 1 else schema
        return schema

    def fields(self, parent: Explained) -> list[Explained]:
        """Return the fields of an object, or of the items of a list, the required ones first."""
        inner = self._inner(parent.schema)
        required = set(inner.get("required", ()))
        found = [
            Explained(path=(*parent.path, name), schema=self.resolve(schema), is_required=name in required)
            for name, schema in inner.get("properties", {}).items()
        ]
        return sorted(found, key=lambda field: not field.is_required)

    def find(self, path: Sequence[str]) -> Explained:
        """Return the field of a path such as spec, replicaSpecs, replicas. Indexes of lists are skipped."""
        found = self.root
        names = [name for name in path if not name.isdecimal() and name != "*"]
        for index, name in enumerate(names):
            below = {field.name: field for field in self.fields(found)}
            if name not in below:
                raise FieldPathError(self._say_unknown(found, names[index:], below))
            found = below[name]
        return found

    def _say_unknown(self, parent: Explained, rest: Sequence[str], below: Mapping[str, Explained]) -> str:
        where = ".".join((self.kind.kind, *parent.path))
        if self._inner(parent.schema).get("x-kubernetes-type") == _POD_TEMPLATE:
            return f"{where} is a pod template of Kubernetes: kubectl explain pod.{'.'.join(rest)}"
        accepted = ", ".join(below) or "none, because it has no fields"
        return f"{where} has no field {rest[0]}; accepted: {accepted}"

    def _inner(self, schema: Schema) -> Schema:
        """Return the schema of the items of nested lists and maps."""
        schema = self.resolve(schema)
        if schema.get("type") == "array" and "items" in schema:
            return self._inner(schema["items"])
        if isinstance(schema.get("additionalProperties"), Mapping) and "properties" not in schema:
            return self._inner(schema["additionalProperties"])
        return schema

    def type_of(self, schema: Schema) -> str:
        """Return the type as kubectl explain writes it, such as `[]string` or `map[string]integer`."""
        schema = self.resolve(schema)
        for union in ("anyOf", "oneOf"):
            if union in schema:
                return " or ".join(dict.fromkeys(self.type_of(part) for part in schema[union]))
        if schema.get("type") == "array":
            return f"[]{self.type_of(schema.get('items', {}))}"
        if schema.get("type") == "object":
            if isinstance(schema.get("additionalProperties"), Mapping) and "properties" not in schema:
                return f"map[string]{self.type_of(schema['additionalProperties'])}"
            return "PodTemplateSpec" if schema.get("x-kubernetes-type") == _POD_TEMPLATE else "Object"
        if "enum" in schema or "const" in schema:
            return "string"
        declared = schema.get("type", "any")
        return " or ".join(name for name in declared if name != "null") if isinstance(declared, list) else str(declared)

    def is_editable(self, path: Sequence[str]) -> bool:
        """Return whether the field, or one that contains it, can be changed while the object lives."""
        return any(_covers(pattern, path) for pattern in self._editable)


def _covers(pattern: Sequence[str], path: Sequence[str]) -> bool:
    names = [name for name in pattern if name != "*" and not name.isdecimal()]
    return len(names) <= len(path) and list(path[: len(names)]) == names


def explanation(schema: KindSchema, field: Explained, *, is_recursive: bool = False) -> str:
    """Return the text about a field and the fields below it."""
    kind = schema.kind
    lines = [f"KIND:     {kind.kind}", f"VERSION:  {', '.join(kind.api_versions)}"]
    if field.path:
        lines += ["", f"FIELD: {_headline(schema, field)}"]
    description = str(field.schema.get("description") or "")
    if description:
        lines += ["", "DESCRIPTION:", *_wrap(description, _INDENT)]
    if constraints := _constraints(field.schema):
        lines += ["", *_wrap(constraints, _INDENT)]
    below = schema.fields(field)
    if below:
        lines += ["", "FIELDS:"]
        lines += _tree(schema, below, _INDENT) if is_recursive else _list_fields(schema, below)
    elif schema.type_of(field.schema) == "PodTemplateSpec":
        lines += ["", "Its fields: kubectl explain pod"]
    return "\n".join(lines)


def _list_fields(schema: KindSchema, fields: Sequence[Explained]) -> Iterator[str]:
    for field in fields:
        yield f"{_INDENT}{_headline(schema, field)}"
        text = " ".join(filter(None, (str(field.schema.get("description") or ""), _constraints(field.schema))))
        yield from _wrap(text, 3 * _INDENT)


def _tree(schema: KindSchema, fields: Sequence[Explained], indent: str) -> Iterator[str]:
    for field in fields:
        yield f"{indent}{_headline(schema, field)}"
        yield from _tree(schema, schema.fields(field), indent + _INDENT)


def _headline(schema: KindSchema, field: Explained) -> str:
    marks = {"required": field.is_required, "editable": schema.is_editable(field.path)}
    shown = [mark for mark, holds in marks.items() if holds]
    return f"{field.name} <{schema.type_of(field.schema)}>" + (f" -{', '.join(shown)}-" if shown else "")


def _constraints(schema: Schema) -> str:
    """Return the accepted values and the default."""
    found = []
    if "const" in schema:
        found.append(f"It is {schema['const']}.")
    if "enum" in schema:
        found.append(f"One of: {', '.join(str(value) for value in schema['enum'])}.")
    low, high = (_bound(schema.get(name)) for name in ("minimum", "maximum"))
    if low is not None and high is not None:
        found.append(f"From {low} to {high}.")
    elif low is not None:
        found.append(f"At least {low}.")
    elif high is not None:
        found.append(f"At most {high}.")
    if (default := schema.get("default")) not in (None, [], {}, "") and not isinstance(default, Mapping):
        found.append(f"Default: {default if not isinstance(default, bool) else str(default).lower()}.")
    return " ".join(found)


def _bound(value: Any) -> Any:
    return None if value in _LIMITS_OF_TYPES else value


def _wrap(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)

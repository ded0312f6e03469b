"""OpenAPI documents with what kubectl needs for validate, apply and explain, from the table of types in schema.json.

The documents contain no descriptions and no response schemas.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from devcluster.formats.schema import TYPES
from devcluster.resources import ApiResource, Catalog
from devcluster.strategies.kueue import MAX_POD_SETS

Json = dict[str, Any]

_PREFIX = "io.k8s.api."
_SCALARS: dict[str, Json] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bool": {"type": "boolean"},
    "float64": {"type": "number", "format": "double"},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
# Scalars on the wire that have a name of their own, which `kubectl explain` shows.
_NAMED_SCALARS: dict[str, Json] = {
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
}
_NAMES = {"quantity": "Quantity", "int-or-string": "IntOrString"}
_RETAIN_KEYS = frozenset(
    {("PodSpec", "volumes"), ("PodSpec", "resourceClaims"), ("PodStatus", "resourceClaimStatuses")}
)
"""Lists whose items are unions: a strategic merge patch of them lists the keys to retain."""
# Of the kinds of custom resource definitions, the fields whose schema clients read.
_CUSTOM: dict[str, Json] = {
    "Workload": {
        "spec": {
            "type": "object",
            "properties": {"podSets": {"type": "array", "maxItems": MAX_POD_SETS, "items": {"type": "object"}}},
            "x-kubernetes-preserve-unknown-fields": True,
        }
    }
}
_PATCH_TYPES = ("application/json-patch+json", "application/merge-patch+json")
_STRATEGIC = "application/strategic-merge-patch+json"


V2_MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V2_DOCUMENT = b"\x0a\x032.0\x12\x12\x0a\x0aKubernetes\x12\x041.36"
"""A protobuf OpenAPI v2 document without definitions: `swagger: 2.0`, and `info` with title and version.

kubectl reads this document for the kind List, which is not a resource and therefore in no v3 document. It finds the
schemas of the items in the v3 documents.
"""


class OpenApi:
    """The documents of one catalog. Each is rendered at its first request."""

    def __init__(self, catalog: Catalog) -> None:
        self._groups = {_path(version): rows for version, rows in catalog.groups().items()}
        self._rendered: dict[str, bytes] = {}

    def document(self, path: str) -> bytes | None:
        """Return the OpenAPI v3 index, a group version's v3 document, or None."""
        root, _, group_version = path.strip("/").partition("openapi/v3")
        group_version = group_version.strip("/")
        if root or not (path.startswith("/openapi/v3") and (not group_version or group_version in self._groups)):
            return None
        if group_version not in self._rendered:
            content = self._group(self._groups[group_version]) if group_version else self._index()
            self._rendered[group_version] = msgspec.json.encode(content)
        return self._rendered[group_version]

    def _index(self) -> Json:
        """Return the index. It has a hash of each document, by which clients validate their cached copies."""
        paths = {}
        for group_version, rows in self._groups.items():
            digest = hashlib.sha256(json.dumps(self._group(rows)).encode()).hexdigest()[:32].upper()
            paths[group_version] = {"serverRelativeURL": f"/openapi/v3/{group_version}?hash={digest}"}
        return {"paths": paths}

    def _group(self, rows: Iterable[ApiResource]) -> Json:
        schemas: Json = {_PREFIX + name: schema for name, schema in _NAMED_SCALARS.items()}
        paths: Json = {}
        for row in rows:
            paths |= _operations(row)
            if row.custom:
                open_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                schemas[_PREFIX + row.kind] = {**open_object, "properties": _CUSTOM.get(row.kind, {})}
            else:
                _add_schemas(schemas, row.kind)
            schemas[_PREFIX + row.kind]["x-kubernetes-group-version-kind"] = [_kind_of(row)]
        info = {"title": "Kubernetes", "version": "1.36"}
        return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _path(group_version: str) -> str:
    return f"apis/{group_version}" if "/" in group_version else f"api/{group_version}"


def _kind_of(row: ApiResource) -> Json:
    return {"group": row.group, "version": row.version, "kind": row.kind}


def _add_schemas(schemas: Json, kind: str) -> None:
    """Add the schemas of a type and of all types that it refers to."""
    if _PREFIX + kind in schemas:
        return
    properties: Json = {}
    schemas[_PREFIX + kind] = {"type": "object", "properties": properties}
    for name, field_type in TYPES[kind].items():
        properties[name] = _property(kind, name, field_type)
        below = field_type.partition("|")[0].replace("map:", "").replace("[]", "")
        if below in TYPES:
            _add_schemas(schemas, below)


def _property(owner: str, name: str, field_type: str) -> Json:
    kind, merges, merge_key = field_type.partition("|")
    found = _type(kind)
    if merges:
        found["x-kubernetes-patch-strategy"] = "merge,retainKeys" if (owner, name) in _RETAIN_KEYS else "merge"
    if merge_key:
        found["x-kubernetes-patch-merge-key"] = merge_key
    return found


def _type(kind: str) -> Json:
    if kind.startswith("[]"):
        return {"type": "array", "items": _type(kind[2:])}
    if kind.startswith("map:"):
        return {"type": "object", "additionalProperties": _type(kind[4:])}
    if kind in _SCALARS:
        return dict(_SCALARS[kind])
    return {"$ref": f"#/components/schemas/{_PREFIX}{_NAMES.get(kind, kind)}"}


def _operations(row: ApiResource) -> Json:
    """Return the operations, from which kubectl learns about dry runs, strict validation and patch types."""
    collection = f"/{_path(row.group_version)}/{'namespaces/{namespace}/' if row.namespaced else ''}{row.plural}"
    patch_types = _PATCH_TYPES if row.custom else (*_PATCH_TYPES, _STRATEGIC)
    patch = _operation("patch", row, writes=True)
    patch["requestBody"] = {"content": {name: {"schema": {"type": "object"}} for name in patch_types}}
    return {
        collection: {"get": _operation("list", row), "post": _operation("post", row, writes=True)},
        f"{collection}/{{name}}": {
            "get": _operation("get", row),
            "put": _operation("put", row, writes=True),
            "patch": patch,
            "delete": _operation("delete", row),
        },
    }


def _operation(action: str, row: ApiResource, *, writes: bool = False) -> Json:
    names = ("dryRun", "fieldManager", "fieldValidation") if writes else ()
    return {
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _kind_of(row),
    }

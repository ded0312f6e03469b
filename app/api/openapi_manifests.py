"""The request bodies with manifests in the OpenAPI document, and the schemas that they refer to."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from app.api.bodies import JSON, MERGE_PATCH, YAML_TYPES
from app.api.resources import Resource
from app.domain.decoding.lists import LIST_KIND, MAX_ITEMS
from app.domain.kinds.base import JOBS
from app.domain.kinds.registry import PODLESS_KINDS

Bodies: TypeAlias = Mapping[tuple[str, str], dict[str, Any]]  # by path and method
_DEFINED: Final = "#/$defs/"
_COMPONENT: Final = "#/components/schemas/"
_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}


def schemas(resources: Sequence[Resource]) -> dict[str, Any]:
    """Return the component schemas that request bodies refer to, by name."""
    found: dict[str, Any] = {_manifest(JOBS): _job_manifest()}
    for kind in PODLESS_KINDS.values():
        schema = kind.json_schema()
        del schema["$schema"]
        found |= schema.pop("$defs")
        found[_manifest(kind.resource)] = schema
    _adapt(found)
    return found | {_submission(resource.name): _submission_schema(resource) for resource in resources}


def request_bodies(resources: Sequence[Resource]) -> Bodies:
    """Return the request bodies of the operations on these resources."""
    bodies: dict[tuple[str, str], dict[str, Any]] = {}
    for resource in resources:
        submission = _body(resource, _submission(resource.name))
        bodies[resource.collection_path, "post"] = bodies[f"{resource.collection_path}/batch", "post"] = submission
        bodies[resource.object_path, "put"] = _body(resource, _manifest(resource.name))
        patch = {"schema": {"type": "object"}, "example": resource.examples.patch}
        bodies[resource.object_path, "patch"] = {"required": True, "content": {MERGE_PATCH: patch}}
    return bodies


def _body(resource: Resource, component: str) -> dict[str, Any]:
    schema = {"$ref": f"{_COMPONENT}{component}"}
    content: dict[str, Any] = {JSON: {"schema": schema, "example": resource.examples.manifest}}
    return {"required": True, "content": content | {YAML_TYPES[0]: {"schema": schema}}}


def _manifest(resource: str) -> str:
    """Return the name of the schema of one manifest."""
    kind = next((kind.kind for kind in PODLESS_KINDS.values() if kind.resource == resource), "")
    return f"{kind}Manifest"


def _submission(resource: str) -> str:
    """Return the name of the schema of one or several manifests."""
    return _manifest(resource).removesuffix("Manifest") + "Submission"


def _job_manifest() -> dict[str, Any]:
    metadata = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "generateName": {"type": "string"},
            "namespace": {"type": "string"},
            "labels": _TEXTS,
            "annotations": _TEXTS,
        },
    }
    return {
        "title": "Manifest",
        "description": "A job in the format of its system. `GET /api/v1/kinds` returns the JSON schema of each kind.",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": metadata,
            "spec": {"type": "object", "additionalProperties": True},
        },
    }


def _submission_schema(resource: Resource) -> dict[str, Any]:
    manifest = {"$ref": f"{_COMPONENT}{_manifest(resource.name)}"}
    several = {
        "title": "Manifests",
        "type": "object",
        "required": ["apiVersion", "kind", "items"],
        "properties": {
            "apiVersion": {"type": "string", "const": "v1"},
            "kind": {"type": "string", "const": LIST_KIND},
            "items": {"type": "array", "items": manifest, "minItems": 1, "maxItems": MAX_ITEMS},
        },
    }
    description = (
        f"One {resource.noun}, or a List of several, of which all or none are stored. "
        "A YAML body may have several documents instead of a List."
    )
    return {"title": _submission(resource.name), "description": description, "anyOf": [manifest, several]}


def _adapt(value: Any) -> None:
    """Point references to the component schemas, and remove defaults that violate their own schema.

    The kinds' schemas use such a default for a field that is required only in some cases.
    """
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            value["$ref"] = reference.replace(_DEFINED, _COMPONENT)
        if _has_invalid_default(value):
            del value["default"]
        for child in value.values():
            _adapt(child)
    elif isinstance(value, list):
        for child in value:
            _adapt(child)


def _has_invalid_default(schema: dict[str, Any]) -> bool:
    default = schema.get("default")
    if not isinstance(default, str | list):
        return False
    is_short = len(default) < max(schema.get("minLength", 0), schema.get("minItems", 0))
    return is_short or default not in schema.get("enum", [default])

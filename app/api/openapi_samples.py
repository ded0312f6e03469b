"""What the OpenAPI document says of SampleSets and SampleJobs: their manifests' schemas, and what to send."""

from typing import Any, Final

from app.api.bodies import JSON, MERGE_PATCH, YAML_TYPES
from app.api.openapi_examples import SAMPLE_MANIFESTS, SAMPLE_PATCHES
from app.api.sample_kinds import SAMPLE_KINDS, SampleKind

TAGS: Final = [
    {"name": "samplesets", "description": "Data caches: submit, list, read, edit and delete SampleSets."},
    {"name": "samplejobs", "description": "Sync, warm up, remove and clear the data of a SampleSet."},
]
_DEFINED: Final = "#/$defs/"
_COMPONENT: Final = "#/components/schemas/"


def manifest_schemas() -> dict[str, Any]:
    """Of both kinds, with the schemas that they refer to."""
    schemas: dict[str, Any] = {}
    for kind in SAMPLE_KINDS:
        schema = kind.kind.json_schema()
        del schema["$schema"]
        schemas |= schema.pop("$defs")
        schemas[_manifest(kind)] = schema
    _adapt(schemas)
    return schemas


def request_body(path: str, method: str) -> dict[str, Any] | None:
    """What the operation takes; None where it is not one of theirs, or takes nothing."""
    kind = next((kind for kind in SAMPLE_KINDS if path in (kind.collection, kind.one)), None)
    if kind is None or method not in ("post", "put", "patch"):
        return None
    if method == "patch":
        patch = {"schema": {"type": "object"}, "example": SAMPLE_PATCHES[kind.kind.kind]}
        return {"required": True, "content": {MERGE_PATCH: patch}}
    schema = {"$ref": f"{_COMPONENT}{_manifest(kind)}"}
    content: dict[str, Any] = {JSON: {"schema": schema, "example": SAMPLE_MANIFESTS[kind.kind.kind]}}
    return {"required": True, "content": content | {YAML_TYPES[0]: {"schema": schema}}}


def _manifest(kind: SampleKind) -> str:
    return f"{kind.kind.kind}Manifest"


def _adapt(value: Any) -> None:
    """Lead references to where the schemas are now, and leave out defaults that the same schema refuses: so it is told
    that a field is required only sometimes.
    """
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            value["$ref"] = reference.replace(_DEFINED, _COMPONENT)
        if _is_refused(value):
            del value["default"]
        for child in value.values():
            _adapt(child)
    elif isinstance(value, list):
        for child in value:
            _adapt(child)


def _is_refused(schema: dict[str, Any]) -> bool:
    default = schema.get("default")
    if not isinstance(default, str | list):
        return False
    is_short = len(default) < max(schema.get("minLength", 0), schema.get("minItems", 0))
    return is_short or default not in schema.get("enum", [default])

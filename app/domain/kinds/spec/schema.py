"""The JSON schema of a kind's manifest, from its spec model."""

from collections.abc import Sequence
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import override

from app.domain.kinds.spec.model import SpecModel


class _Untitled(GenerateJsonSchema):
    """A generator that adds no titles: pydantic derives them from field names, in a spelling that is not upstream's."""

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def manifest_schema(kind: str, api_versions: Sequence[str], spec: type[SpecModel]) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a kind's manifest. A pod template is named by its Kubernetes type."""
    body = spec.model_json_schema(by_alias=True, schema_generator=_Untitled)
    definitions = body.pop("$defs", {})
    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    metadata = {
        "type": "object",
        "description": "Kubernetes ObjectMeta; one of name and generateName is required.",
        "properties": {
            "name": {"type": "string", "description": "Name of the object."},
            "generateName": {"type": "string", "description": "Instead of a name: the prefix of a random name."},
            "namespace": {"type": "string", "description": "The namespace of the route, or absent."},
            "labels": texts | {"description": "Labels of the object."},
            "annotations": texts | {"description": "Annotations of the object."},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        "description": f"The manifest of a {kind}.",
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"enum": list(api_versions), "description": "The version of the kind."},
            "kind": {"const": kind, "description": "Name of the kind."},
            "metadata": metadata,
            "spec": body,
            "status": {"type": "object", "additionalProperties": True, "description": "Ignored."},
        },
        "$defs": definitions,
    }

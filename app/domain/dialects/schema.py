"""The JSON schema of a kind's manifest, from its spec model."""

from typing import Any, Protocol

from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import override

from app.domain.dialects.spec_model import SpecModel


class SpokenKind(Protocol):
    """What of a kind is in its schema."""

    @property
    def kind(self) -> str: ...

    @property
    def api_versions(self) -> tuple[str, ...]: ...


class _Untitled(GenerateJsonSchema):
    """Without the titles that pydantic makes of field names, which say nothing and misspell upstream's."""

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def manifest_schema(dialect: SpokenKind, spec: type[SpecModel]) -> dict[str, Any]:
    """Draft 2020-12. Pod templates are named by their Kubernetes type, not repeated."""
    body = spec.model_json_schema(by_alias=True, schema_generator=_Untitled)
    definitions = body.pop("$defs", {})
    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    metadata = {
        "type": "object",
        "description": "Kubernetes ObjectMeta; one of name and generateName is required.",
        "properties": {
            "name": {"type": "string"},
            "generateName": {"type": "string"},
            "namespace": {"type": "string"},
            "labels": texts,
            "annotations": texts,
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": dialect.kind,
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"enum": list(dialect.api_versions)},
            "kind": {"const": dialect.kind},
            "metadata": metadata,
            "spec": body,
            "status": {"type": "object", "description": "Ignored."},
        },
        "$defs": definitions,
    }

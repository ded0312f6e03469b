"""The request bodies with manifests in the OpenAPI document, and the schemas that they refer to.

<Kind>Manifest ─┬─ <Resource>Manifest    one manifest; `kind` selects the schema
                └─ <Resource>Submission  one manifest, or a List of several
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from app.api.answers.responses import JSON
from app.api.requests.bodies import MERGE_PATCH, YAML_TYPES
from app.api.resources.resource import Resource
from app.domain.decoding.lists import LIST_KIND, MAX_ITEMS
from app.domain.kinds.base import JOBS, Kind
from app.domain.kinds.registry import JOB_KINDS, SAMPLE_KINDS, all_kinds

Bodies: TypeAlias = Mapping[tuple[str, str], dict[str, Any]]  # by path and method
Schema: TypeAlias = dict[str, Any]
_DEFINED: Final = "#/$defs/"
_COMPONENT: Final = "#/components/schemas/"
_METADATA: Final = "ManifestMetadata"
_POD_TEMPLATE: Final = "PodTemplateSpec"
_POD_TEMPLATE_SCHEMA: Final = {
    "type": "object",
    "additionalProperties": True,
    "description": "A pod template: the type core/v1 PodTemplateSpec of Kubernetes, with `metadata` and `spec`. Its "
    "fields are those of Kubernetes; the gateway validates them.",
    "x-kubernetes-type": "io.k8s.api.core.v1.PodTemplateSpec",
}


def schemas(resources: Sequence[Resource]) -> dict[str, Schema]:
    """Return the component schemas that request bodies refer to, by name.

    Raises:
        ValueError: two different schemas have the same name.
    """
    found: dict[str, Schema] = {}
    for kind in all_kinds().values():
        for name, schema in _schemas_of(kind):
            _adapt(schema)
            if found.setdefault(name, schema) != schema:
                raise ValueError(f"two kinds have different schemas with the name {name}")
    found[_POD_TEMPLATE] = _POD_TEMPLATE_SCHEMA
    for resource in resources:
        kinds = _kinds(resource)
        found[_list(resource)] = _list_schema(resource)
        found[_submission(resource)] = _submission_schema(resource, kinds)
        if _manifest(resource) not in found:
            description = f"The manifest of a {resource.noun}."
            found[_manifest(resource)] = _one_of(description, {kind: _of_kind(kind) for kind in kinds})
    return found


def request_bodies(resources: Sequence[Resource]) -> Bodies:
    """Return the request bodies of the operations on these resources."""
    bodies: dict[tuple[str, str], dict[str, Any]] = {}
    for resource in resources:
        one, several = _body(resource, _manifest(resource)), _body(resource, _submission(resource))
        bodies[resource.collection_path, "post"] = bodies[resource.object_path, "put"] = one
        for suffix in ("batch", "dry-run"):
            bodies[f"{resource.collection_path}/{suffix}", "post"] = several
        patch = {"schema": {"type": "object", "additionalProperties": True}, "example": resource.examples.patch}
        bodies[resource.object_path, "patch"] = {"required": True, "content": {MERGE_PATCH: patch}}
    return bodies


def _schemas_of(kind: Kind) -> Iterator[tuple[str, Schema]]:
    """Yield the schema of a kind's manifest and all schemas inside it that have names."""
    manifest = kind.json_schema()
    del manifest["$schema"]
    yield from manifest.pop("$defs").items()
    properties = manifest["properties"]
    # Clients need a name for the type of a spec and of the metadata, which all kinds share. Generators would derive the
    # same name for a spec inside its manifest, and `SampleSetSpec` for the spec in the view of a SampleSet.
    for field, name in (("spec", f"{_of_kind(kind.name)}Spec"), ("metadata", _METADATA)):
        yield name, properties[field]
        about = {key: text for key, text in properties[field].items() if key == "description"}
        properties[field] = {"$ref": f"{_COMPONENT}{name}"} | about
    yield _of_kind(kind.name), manifest


def _kinds(resource: Resource) -> list[str]:
    if resource.name == JOBS:
        return list(dict.fromkeys(kind.name for kind in JOB_KINDS.values()))
    return [kind.name for kind in SAMPLE_KINDS.values() if kind.resource == resource.name]


def _body(resource: Resource, component: str) -> dict[str, Any]:
    schema = {"$ref": f"{_COMPONENT}{component}"}
    content: dict[str, Any] = {JSON: {"schema": schema, "example": resource.examples.manifest}}
    return {"required": True, "content": content | {YAML_TYPES[0]: {"schema": schema}}}


def _of_kind(kind: str) -> str:
    """Return the name of the schema of a kind's manifest."""
    return f"{kind}Manifest"


def _manifest(resource: Resource) -> str:
    """Return the name of the schema of one manifest. For a resource of one kind it is the schema of this kind."""
    return f"{_prefix(resource)}Manifest"


def _list(resource: Resource) -> str:
    return f"{_prefix(resource)}ManifestList"


def _submission(resource: Resource) -> str:
    """Return the name of the schema of one or several manifests."""
    return f"{_prefix(resource)}Submission"


def _prefix(resource: Resource) -> str:
    return "Job" if resource.name == JOBS else resource.noun


def _list_schema(resource: Resource) -> Schema:
    return {
        "description": f"A List of manifests of {resource.noun}s, as kubectl writes it.",
        "type": "object",
        "required": ["apiVersion", "kind", "items"],
        "properties": {
            "apiVersion": {"type": "string", "const": "v1", "description": "Always v1."},
            "kind": {"type": "string", "const": LIST_KIND, "description": "Always List."},
            "items": {
                "type": "array",
                "items": {"$ref": f"{_COMPONENT}{_manifest(resource)}"},
                "minItems": 1,
                "maxItems": MAX_ITEMS,
                "description": "The manifests.",
            },
        },
    }


def _submission_schema(resource: Resource, kinds: Sequence[str]) -> Schema:
    description = (
        f"The manifest of one {resource.noun}, or a List of several. "
        "A YAML body may have several documents instead of a List."
    )
    return _one_of(description, {kind: _of_kind(kind) for kind in kinds} | {LIST_KIND: _list(resource)})


def _one_of(description: str, by_kind: Mapping[str, str]) -> Schema:
    """Return the union of these components. The property `kind` names the one that applies."""
    references = {kind: f"{_COMPONENT}{component}" for kind, component in by_kind.items()}
    return {
        "description": description,
        "oneOf": [{"$ref": reference} for reference in references.values()],
        "discriminator": {"propertyName": "kind", "mapping": references},
    }


def _adapt(value: Any) -> None:
    """Point references to the component schemas, and remove defaults that violate their own schema.

    The kinds' schemas use such a default for a field that is required only in some cases.
    """
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            value["$ref"] = reference.replace(_DEFINED, _COMPONENT)
        if value.get("x-kubernetes-type") == _POD_TEMPLATE_SCHEMA["x-kubernetes-type"]:
            _refer_to_pod_template(value)
        if _has_invalid_default(value):
            del value["default"]
        for child in value.values():
            _adapt(child)
    elif isinstance(value, list):
        for child in value:
            _adapt(child)


def _refer_to_pod_template(schema: Schema) -> None:
    """Replace the schema of a pod template by a reference, so that a client has one type for all of them."""
    description = schema["description"]
    schema.clear()
    schema |= {"$ref": f"{_COMPONENT}{_POD_TEMPLATE}", "description": description}


def _has_invalid_default(schema: Schema) -> bool:
    default = schema.get("default")
    if not isinstance(default, str | list):
        return False
    is_short = len(default) < max(schema.get("minLength", 0), schema.get("minItems", 0))
    return is_short or default not in schema.get("enum", [default])

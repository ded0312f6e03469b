"""Decodes and checks request bodies."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml

from devcluster.errors import bad_request, unsupported_media_type
from devcluster.formats import protobuf, schema
from devcluster.formats.objects import Object
from devcluster.resources import ApiResource

_ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


@dataclass(slots=True)
class Body:
    object: Object
    unknown: list[str] = field(default_factory=list)


def decode(raw: bytes, content_type: str, kind: str) -> Any:
    """Decode JSON, YAML or the protobuf encoding of Kubernetes; other media types are refused with 415."""
    if content_type in ("application/json", ""):
        try:
            return msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise bad_request(
                f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json "
                f"parse error: {error}"
            ) from error
    if content_type in ("application/yaml", "application/x-yaml"):
        try:
            return yaml.safe_load(raw)
        except yaml.YAMLError as error:
            raise bad_request(f"error converting YAML to JSON: {error}") from error
    if content_type == "application/vnd.kubernetes.protobuf":
        try:
            return protobuf.decode(raw)
        except ValueError as error:
            raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {error}") from error
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {_ACCEPTED}"
    )


def decode_object(raw: bytes, content_type: str, resource: ApiResource, validation: str) -> Body:
    value = decode(raw, content_type, resource.kind)
    if not isinstance(value, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    _check_kind(value, resource)
    return check_fields(value, resource, validation)


def check_fields(value: Object, resource: ApiResource, validation: str) -> Body:
    """Check the types of fields, and remove unknown fields. Strict validation refuses them instead."""
    unknown = schema.clean(value, resource.kind, resource.version)
    if unknown and validation == "Strict":
        raise schema.refuse_unknown(resource.kind, resource.version, unknown)
    if not isinstance(value.setdefault("metadata", {}), dict):
        raise bad_request(f"{resource.kind}: metadata must be an object")
    return Body(value, unknown if validation != "Ignore" else [])


def _check_kind(value: Object, resource: ApiResource) -> None:
    kind, version = value.get("kind", ""), value.get("apiVersion", "")
    if resource.custom and not (kind and version):
        raise bad_request("Object 'Kind' is missing in the body of the request")
    if kind and kind != resource.kind:
        raise bad_request(
            f'{kind} in version "{version or resource.version}" cannot be handled as a {resource.kind}: '
            f"converting (v1.{kind}) to (core.{resource.kind}): unknown conversion"
        )
    if version and version != resource.group_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({resource.group_version})"
        )

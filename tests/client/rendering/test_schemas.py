"""What `jobgate explain` shows of the schemas of the real kinds, and of a made-up one."""

import re
from typing import Any

import pytest

from app.domain.kinds.registry import all_kinds
from jobgate.cli.rendering.schemas import FieldPathError, KindSchema, explanation
from jobgate.client.types import Kind

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "status": {"type": "object", "description": "Ignored."},
        "spec": {"$ref": "#/$defs/Spec", "description": "What is wanted."},
    },
    "$defs": {
        "Spec": {
            "type": "object",
            "description": "A spec.",
            "required": ["size"],
            "properties": {
                "mode": {"anyOf": [{"enum": ["A", "B"], "type": "string"}, {"type": "null"}], "default": "A"},
                "size": {"type": "integer", "minimum": 1, "maximum": 2147483647},
                "port": {"type": ["integer", "null"], "minimum": 1, "maximum": 65535},
                "wall-time": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "groups": {"type": "array", "items": {"$ref": "#/$defs/Group"}},
                "ranks": {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "integer"}},
                },
            },
        },
        "Group": {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "default": 1},
                "template": {"type": "object", "x-kubernetes-type": "io.k8s.api.core.v1.PodTemplateSpec"},
            },
        },
    },
}
KIND = Kind(
    kind="MadeUp",
    api_versions=["a/v1", "a/v2"],
    resource="jobs",
    mutable_fields=["/spec/groups/*/count"],
    supports_pause=False,
    json_schema=SCHEMA,
)


def explained(*path: str, is_recursive: bool = False) -> str:
    schema = KindSchema(KIND)
    return explanation(schema, schema.find(path), is_recursive=is_recursive)


def test_a_kind_shows_its_fields_with_the_required_ones_first() -> None:
    assert explained().splitlines() == [
        "KIND:     MadeUp",
        "VERSION:  a/v1, a/v2",
        "",
        "FIELDS:",
        "  spec <Object> -required-",
        "      What is wanted.",
        "  status <Object>",
        "      Ignored.",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "  size <integer> -required-\n      At least 1.",
        "  mode <string>\n      One of: A, B. Default: A.",
        "  port <integer>\n      From 1 to 65535.",
        "  wall-time <integer or string>",
        "  groups <[]Object>",
        "  ranks <map[string][]integer>",
    ],
)
def test_types_values_and_defaults(line: str) -> None:
    assert f"\n{line}\n" in f"{explained('spec')}\n"


def test_a_field_below_a_list_is_found_with_and_without_an_index() -> None:
    assert explained("spec", "groups", "count") == explained("spec", "groups", "0", "count")
    assert "FIELD: count <integer> -editable-" in explained("spec", "groups", "count")


def test_all_fields_are_shown_as_a_tree() -> None:
    shown = explained(is_recursive=True)
    assert "    groups <[]Object>\n      count <integer> -editable-\n      template <PodTemplateSpec>\n" in shown


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("spec", "sise"), "MadeUp.spec has no field sise; accepted: size, mode, port, wall-time, groups, ranks"),
        (("spec", "size", "x"), "MadeUp.spec.size has no field x; accepted: none, because it has no fields"),
        (
            ("spec", "groups", "template", "spec", "containers"),
            "MadeUp.spec.groups.template is a pod template of Kubernetes: kubectl explain pod.spec.containers",
        ),
    ],
)
def test_an_unknown_field_is_answered_with_the_known_ones(path: tuple[str, ...], message: str) -> None:
    with pytest.raises(FieldPathError, match=f"^{re.escape(message)}$"):
        explained(*path)


@pytest.mark.parametrize("kind", all_kinds().values(), ids=lambda kind: kind.name)
def test_every_field_of_a_real_kind_has_a_type(kind: Any) -> None:
    of_kind = Kind(
        kind=kind.name,
        api_versions=[],
        resource="",
        mutable_fields=list(kind.mutable_fields),
        supports_pause=False,
        json_schema=kind.json_schema(),
    )
    schema = KindSchema(of_kind)
    tree = explanation(schema, schema.root, is_recursive=True)
    assert len(tree.splitlines()) > 15
    assert "<any>" not in tree.partition("status <")[0], "a field without type"

"""The OpenAPI document has no form on which a client generator fails, drops an operation or loses a value."""

import re
import tomllib
from pathlib import Path
from typing import Any

from app.domain.kinds.registry import JOB_KINDS
from app.domain.vocabulary import PendingCode
from tests.support.documents.openapi import operations, parameters, reached_by_answers, schemas

ROOT = Path(__file__).parents[3]
JSON = {"application/json", "application/problem+json"}
# The fields of answers that may be absent.
OPTIONAL = {"FieldError.accepted", "Problem.errors"}
# Names of fields whose values usually are a closed set, and the fields of these names whose values are not.
CLOSED = {
    "code",
    "evidence",
    "kind",
    "outcome",
    "phase",
    "removal",
    "restartPolicy",
    "source",
    "state",
    "status",
    "type",
    "verdict",
}
OPEN = {
    "ClusterFinding.code": "the cluster sets it for a refusal",
    "Condition.type": "a kind may have further conditions",
    "Event.type": "the cluster sets it",
    "FieldError.code": "each kind and each parameter has its own codes",
    "Kind.kind": "openapi-python-client would give a variable two types",
    "Problem.type": "a URI that contains the code",
}


def types_of(schema: dict[str, Any]) -> set[str]:
    types = schema.get("type", ())
    return {types} if isinstance(types, str) else set(types)


def test_the_version_is_that_of_the_product(document: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert document["info"]["version"] == project["version"]


def test_headers_are_single_strings(document: dict[str, Any]) -> None:
    wrong = [
        place
        for place, parameter in parameters(document)
        if parameter["in"] == "header" and parameter["schema"].get("type") != "string"
    ]
    assert wrong == []


def test_parameters_cannot_be_null(document: dict[str, Any]) -> None:
    wrong = [place for place, parameter in parameters(document) if "anyOf" in parameter["schema"]]
    assert wrong == []


def test_every_answer_has_one_media_type_and_a_schema(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        for code, response in operation["responses"].items():
            content = response.get("content", {})
            assert len(content) <= 1, (method, path, code, list(content))
            assert all(part["schema"] for part in content.values()), (method, path, code)
        (media_type,) = operation["responses"]["200"]["content"]
        is_text = path.endswith(("/logs", "/watch", "/livez", "/readyz", "/metrics"))
        assert (media_type in JSON) != is_text, (method, path, media_type)


def test_no_schema_is_only_null(document: dict[str, Any]) -> None:
    wrong = [place for place, schema in schemas(document) if schema == {"type": "null"} and ".anyOf." not in place]
    wrong += [place for place, schema in schemas(document) if schema.get("type") == "null" and len(schema) > 1]
    assert wrong == []


def test_no_default_is_an_object_or_null(document: dict[str, Any]) -> None:
    wrong = [
        place
        for place, schema in schemas(document)
        if "default" in schema and (schema["default"] is None or isinstance(schema["default"], dict))
    ]
    assert wrong == []


def test_no_union_has_a_default(document: dict[str, Any]) -> None:
    wrong = [
        place
        for place, schema in schemas(document)
        if "default" in schema and ({"anyOf", "oneOf"} & set(schema) or len(types_of(schema) - {"null"}) > 1)
    ]
    assert wrong == []


def test_every_number_has_a_format_that_holds_its_values(document: dict[str, Any]) -> None:
    found = set()
    for place, schema in schemas(document):
        types = types_of(schema)
        found |= types
        if "integer" in types:
            assert schema.get("format") in ("int32", "int64"), place
            if schema["format"] == "int32":
                assert -(2**31) <= schema.get("minimum", 0) <= schema.get("maximum", 0) < 2**31, place
        if "number" in types:
            assert schema.get("format") == "double", place
    assert found >= {"integer", "number"}


def test_bounds_of_numbers_are_inclusive(document: dict[str, Any]) -> None:
    """OpenAPI 3.0 has booleans for exclusive bounds, 3.1 has numbers. Generators such as ogen know only one of them."""
    exclusive = {"exclusiveMinimum", "exclusiveMaximum"}
    assert [place for place, schema in schemas(document) if exclusive & set(schema)] == []


def test_an_object_without_declared_fields_may_have_any(document: dict[str, Any]) -> None:
    """JSON Schema allows them by default. But ogen then generates a type without fields, and sends each value as {}."""
    wrong = [
        place
        for place, schema in schemas(document)
        if "object" in types_of(schema) and not {"properties", "additionalProperties"} & set(schema)
    ]
    assert wrong == []


def test_every_list_declares_the_position_of_its_feed(document: dict[str, Any]) -> None:
    """A generated client such as that of ogen returns only the headers that the document declares."""
    for path in ("/api/v1/jobs", "/api/v1/namespaces/{namespace}/samplesets", "/api/v1/jobs/counts"):
        responses = document["paths"][path]["get"]["responses"]
        assert all("Jobgate-Feed-Position" in responses[code]["headers"] for code in ("200", "304")), path
    assert "Jobgate-Feed-Position" not in document["paths"]["/api/v1/jobs/{uid}"]["get"]["responses"]["200"]["headers"]


def test_every_field_of_an_answer_is_required(document: dict[str, Any]) -> None:
    components = document["components"]["schemas"]
    optional = {
        f"{name}.{field}"
        for name in reached_by_answers(document)
        for field in components[name].get("properties", {})
        if field not in components[name].get("required", ())
    }
    assert optional == OPTIONAL


def test_names_of_enumeration_values_are_distinct(document: dict[str, Any]) -> None:
    """oapi-codegen declares all of them, and all types, in one scope."""
    names: dict[str, str] = {}
    for place, schema in schemas(document):
        if "enum" in schema:
            assert len(schema["x-enumNames"]) == len(schema["enum"]), place
            for name in schema["x-enumNames"]:
                assert re.fullmatch(r"[A-Z]\w*", name), place
                assert names.setdefault(name, place) == place, (name, place)
                assert name not in document["components"]["schemas"], (name, place)
    assert names


def test_closed_sets_of_values_are_enumerations(document: dict[str, Any]) -> None:
    components = document["components"]["schemas"]
    texts = {
        f"{name}.{field}"
        for name in reached_by_answers(document)
        for field, schema in components[name].get("properties", {}).items()
        if field in CLOSED and schema.get("type") in ("string", ["string", "null"]) and "enum" not in schema
    }
    assert texts == set(OPEN)
    assert set(components["JobKind"]["enum"]) == {kind.name for kind in JOB_KINDS.values()}
    assert components["PendingCode"]["enum"] == sorted(PendingCode)
    assert components["SampleSet"]["properties"]["kind"]["enum"] == ["SampleSet"]


def test_every_extension_is_one_that_generators_read(document: dict[str, Any]) -> None:
    found = {key for _, schema in schemas(document) for key in schema if key.startswith("x-")}
    assert found <= {"x-enumNames", "x-kubernetes-type"}


def test_lists_of_types_have_one_type_and_null(document: dict[str, Any]) -> None:
    wrong = [
        place
        for place, schema in schemas(document)
        if isinstance(types := schema.get("type"), list) and (len(types) != 2 or types[1] != "null")
    ]
    assert wrong == []


def test_every_text_of_a_parameter_has_a_stated_form(document: dict[str, Any]) -> None:
    """Otherwise the document allows values that the gateway refuses."""
    stated = {"pattern", "maxLength", "format", "enum", "$ref"}
    unstated = {
        parameter["name"]
        for _, parameter in parameters(document)
        for schema in (parameter["schema"], parameter["schema"].get("items", {}))
        if schema.get("type") == "string" and not stated & set(schema)
    }
    # The gateway ignores preferences that it does not know, and the value of `verbose`.
    assert unstated == {"prefer", "verbose"}


def test_names_that_generators_derive_for_objects_are_no_names_of_schemas(document: dict[str, Any]) -> None:
    """A generator names the type of an object inside a schema after the schema and the field."""
    components = document["components"]["schemas"]
    clashes = [
        f"{name}.{field}"
        for name, schema in components.items()
        for field, inside in schema.get("properties", {}).items()
        if "$ref" not in inside and f"{name}{field[:1].upper()}{field[1:]}" in components
    ]
    assert clashes == []

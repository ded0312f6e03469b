"""The committed OpenAPI document is current, valid, and complete enough to generate clients from it."""

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import validate

from app.api.document import field_descriptions, openapi
from app.api.resources.resource import Resource
from app.db.feed import changes
from app.domain.kinds.base import JOBS
from app.domain.kinds.registry import JOB_KINDS, all_kinds
from app.running.application import create_app, resources
from tests.support.documents.openapi import schemas as schemas_of
from tests.support.documents.problem_codes import codes_in_source

WATCH_TYPES = {changes.CREATED, changes.EDITED, changes.DELETED, changes.STATUS, "current"}
JOB_TYPES = {changes.CANCELLED, changes.REMOVED}
COMMITTED = Path(__file__).parents[3] / "openapi" / "openapi.json"


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for child in value.values():
            yield from references(child)
    elif isinstance(value, list):
        for child in value:
            yield from references(child)


def test_the_committed_document_is_current() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == openapi.text(create_app()), "run `jobgate openapi`"


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    validate(document)
    assert "itemSchema" not in json.dumps(document)


def test_every_reference_has_a_schema_and_every_schema_a_reference(document: dict[str, Any]) -> None:
    schemas = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    used = set(references(document))
    assert used == schemas


def test_names_of_schemas_are_those_of_classes(document: dict[str, Any]) -> None:
    names = document["components"]["schemas"]
    assert [name for name in names if not re.fullmatch(r"[A-Z]\w*", name)] == []


def test_schemas_of_resources_are_described(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for resource in resources():
        models = resource.models
        for model in (models.view, models.status, models.watch):
            assert schemas[model.__name__.removesuffix("View")].get("description"), model
        entry = schemas[models.history.__name__]["properties"]["items"]["items"]["$ref"].rpartition("/")[2]
        phase = schemas[entry]["properties"]["phase"]["$ref"].rpartition("/")[2]
        assert schemas[phase]["enum"] == list(resource.phases), entry
        changes_of = schemas[models.watch.__name__.removesuffix("View")]["properties"]["type"]["$ref"].rpartition("/")[
            2
        ]
        assert set(schemas[changes_of]["enum"]) == WATCH_TYPES | (JOB_TYPES if resource.name == JOBS else set())
    for name, schema in schemas.items():
        token = schema.get("properties", {}).get("nextPageToken")
        assert token is None or token["description"].startswith("Null on the last page."), name


def test_the_codes_of_problems_are_those_that_the_code_sets(document: dict[str, Any]) -> None:
    found = codes_in_source()
    assert len(found) > 50
    documented = set(document["components"]["schemas"]["ProblemCode"]["enum"])
    assert {code: place for code, place in found.items() if code not in documented} == {}, "add them to PROBLEM_CODES"
    assert documented - set(found) == set(), "remove them from PROBLEM_CODES"


def test_operation_ids_are_unique_snake_case(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in ids)
    assert {"submit_job", "list_jobs", "get_job", "get_job_status", "patch_job", "watch_jobs"} <= set(ids)


def test_every_error_is_a_problem_except_in_the_envelope(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        media_type = "application/json" if path.startswith("/v2alpha1/") else "application/problem+json"
        if operation.get("security") == []:
            assert set(operation["responses"]["400"]["content"]) == {"application/problem+json"}, path
            continue
        assert {"400", "401", "404", "default"} <= set(operation["responses"]), (method, path)
        for code, response in operation["responses"].items():
            if code == "default" or code.startswith(("4", "5")):
                assert set(response["content"]) == {media_type}, (method, path, code)


def test_every_operation_is_described(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        assert operation["tags"], (method, path)
        assert operation["description"], (method, path)
    assert document["servers"]
    assert document["info"]["license"]
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    submit = document["paths"]["/api/v1/namespaces/{namespace}/jobs"]["post"]
    assert submit["requestBody"]["content"]["application/json"]["example"]["kind"] == "GenericJob"


def test_a_submission_has_one_type_of_result(document: dict[str, Any]) -> None:
    for resource in resources():
        responses = document["paths"][resource.collection_path]["post"]["responses"]
        answers = {code: responses[code]["content"]["application/json"]["schema"] for code in ("200", "201")}
        name = resource.models.view.__name__.removesuffix("View")
        assert set(answers) == {"200", "201"}
        assert all(schema == {"$ref": f"#/components/schemas/{name}"} for schema in answers.values())


def test_manifests_are_discriminated_by_kind(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    jobs = schemas["JobManifest"]["discriminator"]["mapping"]
    assert set(jobs) == {kind.name for kind in JOB_KINDS.values()}
    assert set(schemas["JobSubmission"]["discriminator"]["mapping"]) == {*jobs, "List"}
    for kind in all_kinds().values():
        manifest = schemas[f"{kind.name}Manifest"]
        assert manifest["properties"]["kind"]["enum"] == [kind.name]
        assert "kind" in manifest["required"]
        assert manifest["properties"]["spec"]["$ref"] == f"#/components/schemas/{kind.name}ManifestSpec"


def test_unions_of_objects_have_a_discriminator(document: dict[str, Any]) -> None:
    found = []
    for place, schema in schemas_of(document):
        members = [member for key in ("anyOf", "oneOf") for member in schema.get(key, ()) if "$ref" in member]
        if len(members) > 1:
            found.append(place)
            mapping = schema["discriminator"]["mapping"]
            assert sorted(mapping.values()) == sorted(member["$ref"] for member in members), place
    assert found


def test_every_pod_template_has_the_same_schema(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    templates = {
        name: schema["properties"]["template"]["$ref"].rpartition("/")[2]
        for name, schema in schemas.items()
        if "template" in schema.get("properties", {})
    }
    assert len(templates) >= 3
    assert set(templates.values()) == {"PodTemplateSpec"}


@pytest.mark.parametrize("resource", resources(), ids=lambda resource: resource.name)
def test_examples_are_valid_manifests(resource: Resource, document: dict[str, Any]) -> None:
    body = document["paths"][resource.collection_path]["post"]["requestBody"]["content"]["application/json"]
    schema = body["schema"] | {"components": document["components"]}
    validator = jsonschema_rs.Draft202012Validator(schema)
    assert [error.message for error in validator.iter_errors(body["example"])] == []
    assert not validator.is_valid(body["example"] | {"kind": "Job"})


def test_every_schema_and_every_field_is_described(document: dict[str, Any]) -> None:
    components = document["components"]["schemas"]
    assert [name for name, schema in components.items() if not schema.get("description")] == []
    missing = [
        f"{place}.{field}"
        for place, schema in schemas_of(document)
        for field, described in schema.get("properties", {}).items()
        if not described.get("description")
    ]
    assert missing == [], "write a docstring, or a text in app/api/document/field_descriptions.py"


def test_the_first_requests_compute_the_document_once(monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app()
    computed: list[None] = []
    together = threading.Barrier(4)
    openapi_of = app.openapi

    def counted() -> dict[str, Any]:
        computed.append(None)
        return openapi_of()

    def requested() -> bytes:
        together.wait()
        return app.document_bytes()

    monkeypatch.setattr(app, "openapi", counted)
    with ThreadPoolExecutor(4) as threads:
        answers = {request.result() for request in [threads.submit(requested) for _ in range(4)]}
    assert (len(computed), len(answers)) == (1, 1)


def test_fields_that_are_described_as_null_are_nullable(document: dict[str, Any]) -> None:
    wrong = []
    for name, schema in document["components"]["schemas"].items():
        for field, described in schema.get("properties", {}).items():
            if re.search(r"\bnull\b", described["description"], re.IGNORECASE):
                validator = jsonschema_rs.Draft202012Validator(described | {"components": document["components"]})
                wrong += [] if validator.is_valid(None) else [f"{name}.{field}"]
    assert wrong == []


def test_every_description_of_a_field_is_used(document: dict[str, Any]) -> None:
    texts = {
        (name, field): described["description"]
        for name, schema in document["components"]["schemas"].items()
        for field, described in schema.get("properties", {}).items()
    }
    used = {f"{name}.{field}": text for (name, field), text in texts.items()}
    unused = {key for key, text in field_descriptions.OF_SCHEMA.items() if used.get(key) != text}
    fields = {(field, text) for (_, field), text in texts.items()}
    unused |= {field for field, text in field_descriptions.OF_ALL.items() if (field, text) not in fields}
    assert unused == set()


def test_every_answer_to_a_get_has_a_valid_example(document: dict[str, Any]) -> None:
    found = set()
    for method, path, operation in operations(document):
        for media_type, part in operation["responses"]["200"].get("content", {}).items() if method == "get" else ():
            found.add(media_type)
            example = part["example"]
            if media_type != "application/json":
                assert isinstance(example, str), path
                continue
            schema = part["schema"] | {"components": document["components"]}
            errors = jsonschema_rs.Draft202012Validator(schema, validate_formats=True).iter_errors(example)
            assert [(error.instance_path, error.message) for error in errors] == [], path
            assert example, path
    assert "application/json" in found

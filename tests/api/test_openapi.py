"""The committed OpenAPI document is current, valid, and complete enough to generate clients from it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from app.api import openapi
from app.main import create_app

COMMITTED = Path(__file__).parents[2] / "openapi" / "openapi.json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app().openapi()


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

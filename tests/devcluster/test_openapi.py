"""The OpenAPI documents of the embedded cluster: valid, whole, and with what kubectl looks for."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator

from devcluster.resources import Catalog
from devcluster.server.openapi import OpenApi

CATALOG = Catalog(pod_groups=True)
DOCUMENTS = OpenApi(CATALOG)


def document(path: str) -> Any:
    found = DOCUMENTS.document(path)
    assert found is not None
    return json.loads(found)


def paths() -> list[str]:
    return [entry["serverRelativeURL"].partition("?")[0] for entry in document("/openapi/v3")["paths"].values()]


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


@pytest.mark.parametrize("path", paths())
def test_each_document_is_valid_and_whole(path: str) -> None:
    found = document(path)
    OpenAPIV30SpecValidator({**found, "paths": {}}).validate()
    known = {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}
    assert set(references(found)) <= known


@pytest.mark.parametrize("row", CATALOG.rows, ids=lambda row: row.key)
def test_each_kind_can_be_found_and_patched(row: Any) -> None:
    group_version = f"apis/{row.group_version}" if row.group else "api/v1"
    found = document(f"/openapi/v3/{group_version}")
    wanted = {"group": row.group, "version": row.version, "kind": row.kind}
    schemas = found["components"]["schemas"].values()
    assert sum(wanted in schema.get("x-kubernetes-group-version-kind", ()) for schema in schemas) == 1
    patches = [item["patch"] for item in found["paths"].values() if "patch" in item]
    mine = [patch for patch in patches if patch["x-kubernetes-group-version-kind"] == wanted]
    assert len(mine) == 1
    assert {"dryRun", "fieldValidation"} <= {parameter["name"] for parameter in mine[0]["parameters"]}
    strategic = "application/strategic-merge-patch+json" in mine[0]["requestBody"]["content"]
    assert strategic is not row.custom


def test_lists_say_how_a_patch_merges_them() -> None:
    spec = document("/openapi/v3/api/v1")["components"]["schemas"]["io.k8s.api.PodSpec"]["properties"]
    containers, volumes = spec["containers"], spec["volumes"]
    assert (containers["x-kubernetes-patch-strategy"], containers["x-kubernetes-patch-merge-key"]) == ("merge", "name")
    assert volumes["x-kubernetes-patch-strategy"] == "merge,retainKeys"


@pytest.mark.parametrize("path", ["/openapi", "/openapi/v3/api/v2", "/openapi/v3/apis/nosuch/v1", "/x/openapi/v3"])
def test_other_paths_have_none(path: str) -> None:
    assert DOCUMENTS.document(path) is None

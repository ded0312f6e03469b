"""How many pod sets Kueue accepts, as its OpenAPI document says."""

from typing import Any

import pytest

from app.domain.queueing.schema import most_pod_sets_of


def a_document(kind: str = "Workload", **pod_sets: Any) -> Any:
    spec = {"properties": {"spec": {"properties": {"podSets": {"type": "array", **pod_sets}}}}}
    named = {"x-kubernetes-group-version-kind": [{"group": "kueue.x-k8s.io", "kind": kind, "version": "v1beta2"}]}
    return {"components": {"schemas": {"io.k8s.Other": {}, "io.x-k8s.kueue.v1beta2.Workload": spec | named}}}


@pytest.mark.parametrize(
    ("document", "most"),
    [
        (a_document(maxItems=8), 8),
        (a_document(maxItems=18), 18),
        (a_document(), None),
        (a_document(maxItems="many"), None),
        (a_document(maxItems=0), None),
        (a_document("LocalQueue", maxItems=8), None),
        ({}, None),
        ({"components": {"schemas": [1]}}, None),
        ({"components": {"schemas": {"a": 1, "b": {"x-kubernetes-group-version-kind": {"kind": "Workload"}}}}}, None),
        ({"components": {"schemas": {"a": {"x-kubernetes-group-version-kind": [{"kind": "Workload"}]}}}}, None),
        ([], None),
    ],
)
def test_the_bound_of_the_schema(document: Any, most: int | None) -> None:
    assert most_pod_sets_of(document) == most

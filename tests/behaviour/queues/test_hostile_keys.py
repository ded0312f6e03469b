"""Keys of Kueue that a tenant sets in the pod templates of each kind: none reaches a pod, or is dropped silently."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.behaviour.manifests import Body
from tests.behaviour.queues.kueue import Queues, queued
from tests.behaviour.queues.test_lives import di_job, generic_job, mx_job, training_job

KEYS = (
    "admission",
    "elastic-job",
    "job-uid",
    "managed",
    "pod-group-name",
    "pod-group-total-count",
    "pod-suspending-parent",
    "podset",
    "podset-group-name",
    "prebuilt-workload-name",
    "priority-class",
    "queue-name",
    "retriable-in-group",
    "workload",
    "workload-slice-replacement-for",
)
WITH_TEMPLATES = (generic_job, mx_job, di_job)


def templates_of(value: Any) -> Iterator[Body]:
    """Return all pod templates within a manifest."""
    if isinstance(value, dict):
        if "template" in value:
            yield value["template"]
        for part in value.values():
            yield from templates_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from templates_of(part)


@pytest.mark.parametrize("kind", WITH_TEMPLATES)
@pytest.mark.parametrize("field", ["labels", "annotations"])
async def test_a_template_with_a_key_of_kueue_is_refused(
    queues: Queues, kind: Callable[[str, str], Body], field: str
) -> None:
    jobs = queues.jobs
    for key in KEYS:
        manifest = queued(kind("hostile", "exit 0"), "team")
        *_, template = templates_of(manifest["spec"])
        template.setdefault("metadata", {})[field] = {f"kueue.x-k8s.io/{key}": "true"}
        answer = await jobs.http.post(
            f"/api/v1/namespaces/{jobs.namespace}/jobs", json=manifest, params={"dryRun": "All"}
        )
        assert answer.status_code in (403, 422), (key, answer.text)
        pointers = [error["pointer"] for error in answer.json()["errors"]]
        assert any(f"kueue.x-k8s.io~1{key}" in pointer for pointer in pointers), (key, pointers)


@pytest.mark.parametrize("kind", [*WITH_TEMPLATES, training_job])
async def test_the_gates_of_kueue_are_not_a_tenants(queues: Queues, kind: Callable[[str, str], Body]) -> None:
    jobs = queues.jobs
    manifest = queued(kind("hostile", "exit 0"), "team")
    manifest["metadata"]["annotations"] = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    refused = [manifest]
    for template in list(templates_of(manifest["spec"]))[:1]:
        template["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
        refused.append({**manifest, "metadata": {**manifest["metadata"], "annotations": {}}})
    for body in refused:
        answer = await jobs.http.post(f"/api/v1/namespaces/{jobs.namespace}/jobs", json=body, params={"dryRun": "All"})
        assert answer.status_code in (403, 422), answer.text

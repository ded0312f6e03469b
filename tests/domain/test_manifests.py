"""What the golden files of the kinds do not show: the anchor's end, owners, names and sizes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from app.domain.kubernetes import labels
from app.domain.manifests.config import anchor_manifest
from app.domain.manifests.rendered import objects_of, pod_bytes
from app.domain.manifests.workload import pod_manifest, service_manifest
from app.domain.plan import JobPlan, Rank, ServicePlan
from app.domain.vocabulary import JobPhase
from tests.domain.kinds.generic_job.test_golden import CASES, load, plan_of
from tests.support.plans import reserved


@pytest.fixture
def plan() -> JobPlan:
    return plan_of(load("tutorial"))


def test_the_anchor_has_the_terminal_phase_and_never_the_manifest(plan: JobPlan) -> None:
    assert labels.TERMINAL_PHASE not in anchor_manifest(plan)["metadata"]["annotations"]
    anchor = anchor_manifest(plan, JobPhase.SUCCEEDED)
    assert anchor["metadata"]["annotations"][labels.TERMINAL_PHASE] == "Succeeded"
    assert "ownerReferences" not in anchor["metadata"]
    assert "TF_CONFIG" not in json.dumps(anchor)


def test_the_attempt_is_only_in_a_label(plan: JobPlan) -> None:
    replica = plan.replicas[Rank("worker", 1)]
    first, third = (pod_manifest(plan, replica, attempt, "anchor") for attempt in (1, 3))
    assert third["metadata"]["labels"][labels.ATTEMPT] == "3"
    third["metadata"]["labels"][labels.ATTEMPT] = "1"
    assert first == third


@pytest.mark.parametrize("case", CASES)
def test_every_object_but_the_anchor_is_owned_by_it(case: str) -> None:
    anchor, *others = objects_of(plan_of(load(case)), "anchor-uid")
    for manifest in others:
        (owner,) = manifest["metadata"]["ownerReferences"]
        assert owner["name"] == anchor["metadata"]["name"]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == ("anchor-uid", True, False)
    assert all("ownerReferences" not in manifest["metadata"] for manifest in objects_of(plan_of(load(case))))


@pytest.mark.parametrize("case", CASES)
def test_every_object_has_the_labels_of_its_job(case: str) -> None:
    plan = plan_of(load(case))
    for manifest in objects_of(plan):
        found = manifest["metadata"]["labels"]
        assert found[labels.INSTALLATION] == plan.identity.installation
        assert found[labels.JOB_UID] == plan.identity.uid
        assert manifest["metadata"]["namespace"] == plan.identity.namespace


def test_the_reserved_names_are_those_of_the_rendered_objects() -> None:
    plan = plan_of(load("tutorial"))
    made = [(m["kind"].lower(), m["metadata"]["name"]) for m in objects_of(plan) if m["kind"] in ("Pod", "Service")]
    assert sorted(reserved(plan)) == sorted([("job", "keras-mnist-genericjob"), *made])


def test_services_of_a_whole_job_are_made_and_reserved(plan: JobPlan) -> None:
    service = ServicePlan(name="all", ports=(), selector={}, labels={})
    plan = replace(plan, services=(service,))
    assert ("service", "all") in reserved(plan)
    made = service_manifest(plan, service, None)
    assert made in objects_of(plan)
    assert made["spec"] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {labels.JOB_UID: plan.identity.uid},
    }


def test_the_largest_pod_is_measured_as_it_is_sent(plan: JobPlan) -> None:
    def size(manifest: dict[str, Any]) -> int:
        return len(json.dumps(manifest, separators=(",", ":"), ensure_ascii=False).encode())

    uid = "00000000-0000-0000-0000-000000000000"
    sizes = [size(manifest) for manifest in objects_of(plan, uid) if manifest["kind"] == "Pod"]
    assert max(pod_bytes(plan).values()) == max(sizes)
    assert pod_bytes(replace(plan, tasks=())) == {}

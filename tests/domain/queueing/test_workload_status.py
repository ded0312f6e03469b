"""How a Workload is read: the reasons of waits are those that Kueue 0.15 and 0.19 write."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from app.domain.kubernetes.objects import Metadata
from app.domain.kubernetes.queueing import FlavorSpec, Workload, WorkloadSpec
from app.domain.queueing.admission import (
    Admitted,
    PodSetAdmission,
)
from app.domain.queueing.workload_status import Evicted, Unadmitted, Verdict, observe_workload
from app.domain.vocabulary import PendingCode

FLAVOR = FlavorSpec(node_labels={"pool": "a"}, tolerations=({"key": "a"},))


def a_workload(*conditions: tuple[str, ...], **more: Any) -> Workload:
    """Conditions are type, status and, if they matter, reason and message."""
    named = [
        dict(zip(("type", "status", "reason", "message"), (*condition, "r", "m")[:4], strict=True))
        if len(condition) == 2
        else dict(zip(("type", "status", "reason", "message"), condition, strict=True))
        for condition in conditions
    ]
    status = {"conditions": named, **more.pop("status", {})}
    spec = {"podSets": [{"name": "worker", "count": 2}], **more.pop("spec", {})}
    return msgspec.convert({"metadata": {"uid": "w"}, "spec": spec, "status": status} | more, Workload, strict=False)


ASSIGNED = {"podSetAssignments": [{"name": "worker", "flavors": {"cpu": "gpu-pool", "memory": "gpu-pool"}}]}
ADMITTED = (("QuotaReserved", "True"), ("Admitted", "True"))
UPDATES = {
    "name": "worker",
    "labels": {"l": "1"},
    "annotations": {"a": "1"},
    "nodeSelector": {"n": "1"},
    "tolerations": [{"key": "b"}],
}


def verdict(workload: Workload, **flavors: FlavorSpec) -> Verdict:
    return observe_workload(workload, {"gpu-pool": FLAVOR} | flavors).verdict


def test_an_admission_has_its_flavors_and_the_updates_of_its_checks() -> None:
    found = verdict(a_workload(*ADMITTED, status={"admission": ASSIGNED}))
    assert found == Admitted(
        pod_sets={"worker": PodSetAdmission(node_labels={"pool": "a"}, tolerations=({"key": "a"},))},
        counts={"worker": 2},
    )
    checks = [{"podSetUpdates": [UPDATES, {**UPDATES, "name": "other"}]}]
    found = verdict(a_workload(*ADMITTED, status={"admission": ASSIGNED, "admissionChecks": checks}))
    assert isinstance(found, Admitted)
    assert found.pod_sets["worker"] == PodSetAdmission(
        labels={"l": "1"},
        annotations={"a": "1"},
        node_labels={"pool": "a", "n": "1"},
        tolerations=({"key": "a"}, {"key": "b"}),
    )


def test_an_admission_has_the_topology_of_its_assignment() -> None:
    values = [{"individual": {"roots": ["a", "b"]}}]
    slices = [{"domainCount": 2, "podCounts": {"universal": 1}, "valuesPerLevel": values}]
    worker = {"name": "worker", "flavors": {"cpu": "gpu-pool"}}
    assigned = {"podSetAssignments": [{**worker, "topologyAssignment": {"levels": ["host"], "slices": slices}}]}
    found = verdict(a_workload(*ADMITTED, status={"admission": assigned}))
    assert isinstance(found, Admitted)
    topology = found.pod_sets["worker"].topology
    assert topology is not None
    assert [topology.domain_of(place) for place in (0, 1)] == [{"host": "a"}, {"host": "b"}]


def test_a_topology_that_contradicts_itself_places_no_pod() -> None:
    slices = [{"domainCount": 2, "podCounts": {"universal": 1}, "valuesPerLevel": [{"individual": {"roots": ["a"]}}]}]
    topology = {"levels": ["host"], "slices": slices}
    worker = {"name": "worker", "flavors": {"cpu": "gpu-pool"}, "topologyAssignment": topology}
    found = verdict(a_workload(*ADMITTED, status={"admission": {"podSetAssignments": [worker]}}))
    assert found == Unadmitted(
        code=PendingCode.NO_MATCHING_FLAVOR,
        message="the topology assignment of the pod set worker contradicts itself, so no pod is placed",
        holds_quota=True,
    )


@pytest.mark.parametrize(
    ("count", "reclaimable", "is_whole"), [(2, 0, True), (1, 1, True), (2, 1, True), (1, 0, False)]
)
def test_a_job_does_not_start_in_part(count: int, reclaimable: int, *, is_whole: bool) -> None:
    admission = {"podSetAssignments": [{"name": "worker", "count": count}]}
    reclaimed = [{"name": "worker", "count": reclaimable}] if reclaimable else []
    found = verdict(a_workload(*ADMITTED, status={"admission": admission, "reclaimablePods": reclaimed}))
    assert isinstance(found, Admitted) == is_whole
    if isinstance(found, Unadmitted):
        assert (found.code, found.holds_quota) == (PendingCode.WAITING_FOR_QUOTA, True)
        assert found.message.startswith("Kueue has reserved quota for 1 of 2 pods of the pod set worker, and no job")


def test_an_unknown_flavor_is_awaited() -> None:
    unknown = {"podSetAssignments": [{"name": "worker", "flavors": {"cpu": "other"}}]}
    found = verdict(a_workload(*ADMITTED, status={"admission": unknown}))
    assert found == Unadmitted(
        code=PendingCode.NO_MATCHING_FLAVOR, message="the cluster has no ResourceFlavor other", holds_quota=True
    )


LACKING = "couldn't assign flavors to pod set a: insufficient unused quota for cpu in flavor small, 2 more needed"
EXCEEDED = "insufficient quota for cpu in flavor small, current podset request (16) > maximum capacity (4)"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (LACKING, PendingCode.WAITING_FOR_QUOTA),
        (EXCEEDED, PendingCode.EXCEEDS_MAX_QUOTA),
        # All pod sets must fit, and one flavor must have all resources of a pod set.
        (f"{LACKING}; couldn't assign flavors to pod set b: {EXCEEDED}", PendingCode.EXCEEDS_MAX_QUOTA),
        (
            f"{LACKING}; couldn't assign flavors to pod set b: resource memory unavailable in ClusterQueue",
            PendingCode.NO_MATCHING_FLAVOR,
        ),
        (
            f"{EXCEEDED}, insufficient unused quota for memory in flavor small, 1Gi more needed",
            PendingCode.EXCEEDS_MAX_QUOTA,
        ),
        (
            f"{EXCEEDED}, insufficient unused quota for cpu in flavor big, 1 more needed",
            PendingCode.WAITING_FOR_QUOTA,
        ),
        ("LocalQueue nope doesn't exist", PendingCode.QUEUE_MISSING),
        ("ClusterQueue nope doesn't exist", PendingCode.QUEUE_MISSING),
        ("LocalQueue team is inactive", PendingCode.QUEUE_STOPPED),
        ("ClusterQueue team is inactive", PendingCode.QUEUE_STOPPED),
        ("Workload namespace doesn't match ClusterQueue selector", PendingCode.NO_MATCHING_FLAVOR),
        (
            "couldn't assign flavors to pod set worker: untolerated taint {gpu NoSchedule} in flavor gpu",
            PendingCode.NO_MATCHING_FLAVOR,
        ),
        (
            "couldn't assign flavors to pod set worker: flavor small doesn't match node affinity",
            PendingCode.NO_MATCHING_FLAVOR,
        ),
        (
            "couldn't assign flavors to pod set worker: resource nvidia.com/gpu unavailable in ClusterQueue",
            PendingCode.NO_MATCHING_FLAVOR,
        ),
        (
            "flavor a doesn't match node affinity, insufficient unused quota for cpu in flavor b, 1 more needed",
            PendingCode.WAITING_FOR_QUOTA,
        ),
        (
            'spec.podSets[0].template.spec.resourceClaims[0]: Not found: "DeviceClass gpu is not mapped"',
            PendingCode.NO_MATCHING_FLAVOR,
        ),
        ("DynamicResourceAllocation feature does not support use of resource claims", PendingCode.NO_MATCHING_FLAVOR),
        ("The workload has failed admission checks", PendingCode.ADMISSION_CHECKS),
        ("waiting for all admitted workloads to be in PodsReady condition", PendingCode.WAITING_FOR_KUEUE),
        (
            'resources validation failed: containers[0]: Invalid value: ["cpu"]: requests must not exceed its limits',
            PendingCode.REFUSED,
        ),
        (
            "resources didn't satisfy LimitRange constraints: containers[0]: requests exceed it's limits",
            PendingCode.REFUSED,
        ),
        ("a message of a later version", PendingCode.WAITING_FOR_QUOTA),
    ],
)
def test_a_wait_has_a_code(message: str, code: PendingCode) -> None:
    found = verdict(a_workload(("QuotaReserved", "False", "Pending", message)))
    assert found == Unadmitted(code=code, message=message)


def test_a_wait_for_admission_checks_names_those_that_are_not_ready() -> None:
    checks = [
        {"name": "budget", "state": "Pending", "message": "asks\nthe team"},
        {"name": "nodes", "state": "Ready", "message": "they are there"},
        {"name": "site", "state": "Retry", "message": ""},
    ]
    found = verdict(a_workload(("QuotaReserved", "True"), status={"admissionChecks": checks}))
    assert isinstance(found, Unadmitted)
    in_progress = "quota is reserved, and admission checks are in progress"
    assert found.message == f"{in_progress}: budget is Pending: asks the team; site is Retry"


@pytest.mark.parametrize(
    ("workload", "wanted"),
    [
        (a_workload(), (PendingCode.WAITING_FOR_KUEUE, False)),
        (a_workload(("QuotaReserved", "True")), (PendingCode.ADMISSION_CHECKS, True)),
        (
            a_workload(("QuotaReserved", "False"), ("Requeued", "False", "PodsReadyTimeout", "later")),
            (PendingCode.REQUEUE_BACK_OFF, False),
        ),
        (
            a_workload(("QuotaReserved", "False"), ("Requeued", "False", "ClusterQueueStopped", "it is stopped")),
            (PendingCode.QUEUE_STOPPED, False),
        ),
        (
            a_workload(("QuotaReserved", "False"), ("Requeued", "False", "LocalQueueStopped", "it is stopped")),
            (PendingCode.QUEUE_STOPPED, False),
        ),
        # Kueue 0.19 about a device class without a resource.
        (
            a_workload(
                (
                    "QuotaReserved",
                    "False",
                    "Inadmissible",
                    "spec.podSets[0].template.spec.resourceClaims[0]: Not found",
                ),
                ("Requeued", "False", "Inadmissible", "the same"),
            ),
            (PendingCode.NO_MATCHING_FLAVOR, False),
        ),
        # The condition of an earlier eviction says nothing about a Workload without quota.
        (a_workload(("QuotaReserved", "False"), ("Evicted", "True")), (PendingCode.WAITING_FOR_QUOTA, False)),
    ],
)
def test_other_waits(workload: Workload, wanted: tuple[PendingCode, bool]) -> None:
    found = verdict(workload)
    assert isinstance(found, Unadmitted)
    assert (found.code, found.holds_quota) == wanted


DEACTIVATED = Evicted(
    reason="Deactivated", message="the Workload of the job is deactivated", holds_quota=False, is_deactivated=True
)


@pytest.mark.parametrize(
    ("workload", "wanted"),
    [
        (
            a_workload(*ADMITTED, ("Evicted", "True", "Preempted", "by another")),
            Evicted(reason="Preempted", message="by another", holds_quota=True),
        ),
        (
            a_workload(*ADMITTED, ("Evicted", "True", "Preempted", "by\nanother " + "x" * 32_768)),
            Evicted(reason="Preempted", message=f"by another {'x' * 988}…", holds_quota=True),
        ),
        (
            a_workload(*ADMITTED, ("Evicted", "True", "Deactivated", "off"), spec={"active": False}),
            Evicted(reason="Deactivated", message="off", holds_quota=True, is_deactivated=True),
        ),
        (
            a_workload(*ADMITTED, ("Finished", "True", "ByHand", "done")),
            Evicted(reason="WorkloadFinished", message="another client has finished it: done", holds_quota=False),
        ),
        (a_workload(spec={"active": False}), DEACTIVATED),
        # Kueue writes the condition of the deactivation later: this is an earlier eviction.
        (a_workload(("Evicted", "True", "Preempted", "by another"), spec={"active": False}), DEACTIVATED),
        (
            a_workload(("Evicted", "False", "QuotaReserved", "Previously: by another"), spec={"active": False}),
            DEACTIVATED,
        ),
        (
            a_workload(("Evicted", "True", "DeactivatedDueToAdmissionCheck", "no"), spec={"active": False}),
            replace(DEACTIVATED, message="no"),
        ),
        (
            a_workload(*ADMITTED, metadata={"uid": "w", "deletionTimestamp": "2030-01-01T00:00:00Z"}),
            Evicted(reason="WorkloadDeleted", message="the Workload of the job is deleted", holds_quota=True),
        ),
    ],
)
def test_evictions(workload: Workload, wanted: Evicted) -> None:
    assert verdict(workload) == wanted


@pytest.mark.parametrize(("annotations", "queue"), [({}, "routed"), ({"jobgate.dev/queue": "team"}, "team")])
def test_the_queue_of_a_workload_is_the_one_that_it_was_made_for(annotations: dict[str, str], queue: str) -> None:
    workload = Workload(metadata=Metadata(annotations=annotations), spec=WorkloadSpec(queue_name="routed"))
    assert observe_workload(workload, {}).queue == queue


def test_what_else_is_observed() -> None:
    finalizers = ["other", "jobgate.dev/admission"]
    reclaimable = {"reclaimablePods": [{"name": "worker", "count": 1}, {"name": "ps"}]}
    workload = a_workload(("PodsReady", "True"), ("Finished", "True"), status=reclaimable)
    found = observe_workload(msgspec.structs.replace(workload, metadata=workload.metadata), {})
    assert (found.sizes, found.ready, found.finished, found.reclaimable) == (
        {"worker": 2},
        True,
        True,
        {"worker": 1, "ps": 0},
    )
    assert not found.held
    held = msgspec.structs.replace(workload.metadata, finalizers=tuple(finalizers))
    assert observe_workload(msgspec.structs.replace(workload, metadata=held), {}).held

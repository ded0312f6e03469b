"""The Workload of a job, what is written to it, and the pods that follow its admission."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from app.domain.errors import InvalidManifest
from app.domain.kubernetes.topology import LevelValues, PodCounts, TopologyAssignment, TopologySlice
from app.domain.manifests.workload import pod_manifest
from app.domain.plan import JobPlan, Manifest, PriorityClassKind, PriorityClassRef, QueuePlan
from app.domain.queueing.admission import PodSetAdmission, TaskAdmission
from app.domain.queueing.pods import with_admission, with_parent
from app.domain.queueing.priorities import Priority
from app.domain.queueing.requests import check_queue, queue_of
from app.domain.queueing.workload import (
    MOST_POD_SETS,
    MOST_UNMERGED,
    give_back,
    job_uid_of,
    number_of,
    pod_sets,
    pods_ready_status,
    with_condition,
    workload_manifest,
    workload_name,
)
from tests.support.plans import T0, a_plan, with_templates

NOW = "2030-01-01T00:00:00Z"
N1 = LevelValues(universal="n1")


def test_a_pod_set_has_what_the_scheduler_reads() -> None:
    resources = {"requests": {"cpu": "1"}}
    fields = {
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "gpu"}],
        "priorityClassName": "high",
        "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpus"}],
    }
    # Those of the pod count instead of the sum of its containers. Kueue 0.19 takes a limit for a request.
    of_pod = {"requests": {"memory": "4Gi"}, "limits": {"memory": "8Gi", "cpu": "64"}}
    containers = [{"name": "c", "env": [], "resources": resources, "volumeMounts": [{}]}]
    spec = {**fields, "resources": of_pod, "containers": containers}
    [found] = pod_sets(with_templates(a_plan({"Worker": 2, "idle": 0}), {"Worker": spec}))
    assert (found.name, found.count, found.tasks) == ("worker", 2, ("Worker",))
    kept = {"containers": [{"name": "c", "resources": resources}], "resources": {"requests": {"memory": "4Gi"}}}
    assert found.template == {"spec": {**fields, **kept}}


def test_a_limit_of_a_container_is_the_default_of_its_request() -> None:
    limits = {"cpu": "64", "memory": "8Gi"}
    only_claims = {"claims": [{"name": "g"}]}
    containers = [
        {"name": "c", "resources": {"limits": limits, "requests": {"cpu": "1"}}},
        {"name": "d", "resources": only_claims},
    ]
    spec = {"containers": containers, "initContainers": [{"name": "i", "resources": {"limits": limits}}]}
    [found] = pod_sets(with_templates(a_plan(), {"worker": spec}))
    kept = found.template["spec"]
    assert [item["resources"] for item in (*kept["containers"], *kept["initContainers"])] == [
        {"limits": limits, "requests": {"cpu": "1", "memory": "8Gi"}},
        only_claims,
        {"limits": limits, "requests": limits},
    ]


@pytest.mark.parametrize(
    ("tasks", "names"),
    [
        (["worker"], ["worker"]),
        (["Worker", "worker"], ["task-0", "task-1"]),
        (["a_b", "c"], ["task-0", "c"]),
    ],
)
def test_names_of_pod_sets_are_valid_and_distinct(tasks: list[str], names: list[str]) -> None:
    assert [one.name for one in pod_sets(a_plan(dict.fromkeys(tasks, 1)))] == names


def test_equal_tasks_share_a_pod_set_if_there_are_many() -> None:
    tasks = {f"t{number}": number + 1 for number in range(MOST_UNMERGED)}
    assert [one.count for one in pod_sets(a_plan(tasks))] == list(tasks.values())
    many = {**tasks, "last": 100}
    [merged] = pod_sets(a_plan(many))
    assert (merged.name, merged.count, merged.tasks) == ("t0", sum(many.values()), tuple(many))
    # One of them differs.
    other = with_templates(a_plan(many), {"t3": {"nodeSelector": {"zone": "b"}}})
    assert {one.name: one.count for one in pod_sets(other)} == {"t0": sum(many.values()) - 4, "t3": 4}


def a_queued(tasks: int, priority: PriorityClassRef | None = None, **queue: Any) -> JobPlan:
    sizes = {f"t{number}": 1 for number in range(tasks)}
    plan = a_plan(sizes, queue=QueuePlan(**({"name": "team"} | queue)), priority=priority)
    return with_templates(plan, {f"t{number}": {"nodeSelector": {"n": str(number)}} for number in range(tasks)})


@pytest.mark.parametrize(
    ("plan", "required", "code"),
    [
        (a_plan(), False, None),
        (a_plan(), True, "QueueRequired"),
        (a_queued(1), True, None),
        (a_queued(MOST_POD_SETS), False, None),
        (a_queued(MOST_POD_SETS + 1), False, "TooManyPodSets"),
        (a_queued(MOST_POD_SETS + 1, of_own_scheduler=True), False, None),
        (a_queued(1, name="Team_1"), False, "InvalidName"),
        (a_queued(1, PriorityClassRef(kind=PriorityClassKind.WORKLOAD, name="No Class")), False, "InvalidName"),
    ],
)
def test_what_a_submission_may_request(plan: JobPlan, *, required: bool, code: str | None) -> None:
    if code is None:
        check_queue(plan, required=required)
        return
    with pytest.raises(InvalidManifest) as refused:
        check_queue(plan, required=required)
    assert [error.code for error in refused.value.errors] == [code]


def test_a_label_of_a_manifest_names_the_queue() -> None:
    assert queue_of({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "team"}}}) == QueuePlan(name="team")
    assert queue_of({"metadata": {}}) is None


def test_a_workload_has_its_owner_its_priority_and_its_finalizer() -> None:
    high = PriorityClassRef(kind=PriorityClassKind.POD, name="high")
    found = workload_manifest(a_plan(), "team", Priority(value=7, of=high), "anchor-uid")
    metadata, spec = found["metadata"], found["spec"]
    assert (metadata["name"], metadata["finalizers"]) == ("jobgate-u", ["jobgate.dev/admission"])
    assert metadata["ownerReferences"][0]["uid"] == "anchor-uid"
    assert (spec["queueName"], spec["priority"]) == ("team", 7)
    assert metadata["annotations"] == {"jobgate.dev/queue": "team"}
    assert spec["priorityClassRef"] == {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"}
    assert "priorityClassRef" not in workload_manifest(a_plan(), "team", Priority(), "anchor-uid")["spec"]


def test_tasks_with_different_topologies_are_different_pod_sets() -> None:
    many = a_plan({f"t{number}": 1 for number in range(MOST_UNMERGED + 1)})
    annotations = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    tasks = with_templates(many, {}, {"t3": {"annotations": annotations}})
    shared, alone = (one.manifest() for one in pod_sets(tasks))
    assert (alone["name"], alone["count"], alone["topologyRequest"]) == ("t3", 1, {"required": "rack"})
    assert "topologyRequest" not in shared


def test_a_further_workload_is_for_some_replicas() -> None:
    plan = a_plan({"ps": 1, "worker": 5})
    found = workload_manifest(plan, "team", Priority(), "anchor-uid", number=2, counts={"worker": 3})
    assert found["metadata"]["name"] == "jobgate-u-2"
    assert [(one["name"], one["count"]) for one in found["spec"]["podSets"]] == [("worker", 3)]


UID = "01234567-89ab-cdef-0123-456789abcdef"


@pytest.mark.parametrize("number", [0, 1, 10])
def test_the_name_of_a_workload_tells_its_job_and_number(number: int) -> None:
    name = workload_name(UID, number)
    assert (job_uid_of(name), number_of(name, UID)) == (UID, number)


@pytest.mark.parametrize("rest", ["-0", "-01", "-", "-x", "-1-1", "1", "-²", "--1"])
def test_other_names_are_those_of_other_objects(rest: str) -> None:
    assert number_of(f"jobgate-{UID}{rest}", UID) is None
    assert number_of("jobgate-other", UID) is None


def a_condition(kind: str, status: str = "True", **more: Any) -> Manifest:
    return {"type": kind, "status": status, "reason": kind, "message": "", "lastTransitionTime": "before", **more}


@pytest.mark.parametrize(
    ("reason", "requeued", "because", "left"),
    [
        ("Preempted", "True", "Preempted", {"DeactivationTarget": "True"}),
        ("PodsReadyTimeout", "False", "PodsReadyTimeout", {"DeactivationTarget": "True"}),
        ("DeactivatedDueToAdmissionCheck", "False", "Deactivated", {}),
    ],
)
def test_a_workload_is_given_back_in_one_write(
    reason: str, requeued: str, because: str, left: Mapping[str, str]
) -> None:
    known = [a_condition(kind) for kind in ("QuotaReserved", "Evicted", "PodsReady", "DeactivationTarget")]
    workload = {"metadata": {"generation": 2}, "status": {"admission": {"clusterQueue": "q"}, "conditions": known}}
    status = give_back(workload, reason, "why", T0)
    assert status["admission"] is None
    found = {item["type"]: item for item in status["conditions"]}
    assert {kind: item["status"] for kind, item in found.items()} == {
        "QuotaReserved": "False",
        "Admitted": "False",
        "Evicted": "True",
        "PodsReady": "False",
        "Requeued": requeued,
        **left,
    }
    assert found["Requeued"]["reason"] == because
    assert (found["QuotaReserved"]["lastTransitionTime"], found["QuotaReserved"]["observedGeneration"]) == (NOW, 2)
    assert found["Evicted"]["lastTransitionTime"] == "before"


ADMITTED = a_condition("Admitted", lastTransitionTime=NOW)
EXCEEDED = "MaximumExecutionTimeExceeded"


@pytest.mark.parametrize(
    ("conditions", "before", "after"),
    [
        ([ADMITTED], None, 90),
        ([ADMITTED], 30, 120),
        ([{**ADMITTED, "lastTransitionTime": "2030-01-01T00:02:00Z"}], 30, 30),
        ([{**ADMITTED, "lastTransitionTime": "yesterday"}], 30, 30),
        ([{**ADMITTED, "status": "False"}], 30, 30),
        ([], None, None),
        ([ADMITTED, a_condition("DeactivationTarget", reason=EXCEEDED)], 30, None),
        ([ADMITTED, a_condition("Evicted", reason=f"DeactivatedDueTo{EXCEEDED}")], 30, None),
        ([ADMITTED, a_condition("Evicted", "False", reason=f"DeactivatedDueTo{EXCEEDED}")], None, 90),
    ],
)
def test_the_time_of_all_admissions_counts_until_it_is_exceeded(
    conditions: Sequence[Manifest], before: int | None, after: int | None
) -> None:
    field = "accumulatedPastExecutionTimeSeconds"
    status = {"conditions": conditions} | ({} if before is None else {field: before})
    written = give_back({"metadata": {}, "status": status}, "Preempted", "why", T0 + timedelta(seconds=90))
    assert (status | written).get(field) == after


def test_a_workload_that_waited_for_recovery_is_given_back_as_one_that_waits_for_its_start() -> None:
    workload: Manifest = {"metadata": {}, "status": {"conditions": [a_condition("PodsReady")]}}
    [waits] = pods_ready_status(workload, T0, ready=False)["conditions"]
    assert (waits["status"], waits["reason"], waits["lastTransitionTime"]) == ("False", "WaitForRecovery", NOW)
    [back] = pods_ready_status({"metadata": {}, "status": {"conditions": [waits]}}, T0, ready=True)["conditions"]
    assert (back["status"], back["reason"]) == ("True", "Started")
    given = give_back({"metadata": {}, "status": {"conditions": [waits]}}, "PodsReadyTimeout", "why", T0)
    [again] = [item for item in given["conditions"] if item["type"] == "PodsReady"]
    assert (again["status"], again["reason"]) == ("False", "WaitForStart")


def test_a_condition_that_holds_keeps_its_time() -> None:
    workload = {"metadata": {}, "status": {"conditions": [a_condition("PodsReady")]}}
    [same] = with_condition(workload, "PodsReady", "Started", "all", T0)["conditions"]
    assert (same["lastTransitionTime"], same["message"]) == ("before", "all")
    [_, new] = with_condition(workload, "Finished", "Succeeded", "done", T0)["conditions"]
    assert (new["type"], new["lastTransitionTime"]) == ("Finished", NOW)


def test_a_pod_follows_its_admission_and_keeps_what_it_has() -> None:
    added = PodSetAdmission(
        labels={"team": "other", "topology": "rack"},
        annotations={"note": "check"},
        node_labels={"pool": "a"},
        tolerations=({"key": "b"},),
    )
    pod = {
        "metadata": {"labels": {"team": "mine"}, "ownerReferences": [{"name": "jobgate-u"}]},
        "spec": {"nodeSelector": {"zone": "z"}, "tolerations": [{"key": "a"}], "containers": []},
    }
    found = with_admission(pod, TaskAdmission(pod_set="worker", size=1, pods=added), 0)
    assert found["metadata"]["labels"] == {"team": "mine", "topology": "rack"}
    assert found["metadata"]["annotations"] == {"note": "check"}
    annotated = with_parent(found)["metadata"]
    assert annotated["annotations"] == {"note": "check", "kueue.x-k8s.io/pod-suspending-parent": "jobgate-u"}
    assert annotated["labels"] == found["metadata"]["labels"]
    assert found["spec"] == {
        "nodeSelector": {"zone": "z", "pool": "a"},
        "tolerations": [{"key": "a"}, {"key": "b"}],
        "containers": [],
    }
    domain = TopologySlice(domain_count=1, pod_counts=PodCounts(universal=2), values_per_level=(N1,))
    placed = replace(added, topology=TopologyAssignment(levels=("host",), slices=(domain,)))
    found = with_admission(pod, TaskAdmission(pod_set="worker", size=2, pods=placed), 1)
    assert found["spec"]["nodeSelector"] == {"zone": "z", "pool": "a", "host": "n1"}
    assert found["metadata"]["annotations"]["kueue.x-k8s.io/podset-unconstrained-topology"] == "true"
    owned = {"metadata": {"ownerReferences": [{"name": "jobgate-u"}]}, "spec": {}}
    bare = with_admission(owned, TaskAdmission(pod_set="w", size=1, pods=PodSetAdmission()), 0)
    assert bare["spec"] == {}
    assert "annotations" not in bare["metadata"]
    assert with_parent(bare)["metadata"]["annotations"] == {"kueue.x-k8s.io/pod-suspending-parent": "jobgate-u"}


def test_a_pod_without_an_assignment_claims_no_topology() -> None:
    annotations = {"kueue.x-k8s.io/podset-required-topology": "rack", "note": "mine"}
    plan = with_templates(a_plan({"worker": 1}), {}, {"worker": {"annotations": annotations}})
    pod = pod_manifest(plan, plan.task["worker"].render(0), 1, None)
    assert pod["metadata"]["annotations"] == {"note": "mine"}

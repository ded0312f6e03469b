"""Whether a queue has room for a job now, and what it lacks."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.queueing.queue_status import FlavorQuota, QueueStatus
from app.domain.queueing.room import RoomOutcome, room_for_job
from app.domain.queueing.workload import PodSetPlan
from app.domain.vocabulary import PendingCode


def quota(flavor: str, resource: str, nominal: str | None, used: str | None) -> FlavorQuota:
    return FlavorQuota(flavor=flavor, resource=resource, nominal=nominal, used=used)


def a_queue(*quotas: FlavorQuota, **more: Any) -> QueueStatus:
    return QueueStatus(cluster_queue="research", active=True, quotas=quotas, **more)


def a_pod_set(count: int = 1, name: str = "worker", *, claims: bool = False, **requests: str) -> PodSetPlan:
    named = {key.replace("gpu", "nvidia.com/gpu"): value for key, value in requests.items()}
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": named}}]}
    if claims:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    return PodSetPlan(name=name, count=count, template={"spec": spec}, tasks=(name,))


CPU = a_queue(quota("x", "cpu", "4", "2"))
TWO = a_queue(quota("x", "cpu", "4", "3"), quota("y", "cpu", "4", "1500m"))
PAIR = a_queue(
    quota("x", "cpu", "8", "0"),
    quota("x", "memory", "8Gi", "6Gi"),
    quota("y", "cpu", "2", "0"),
    quota("y", "memory", "64Gi", "0"),
)
APART = a_queue(quota("x", "cpu", "4", "0"), quota("gpus", "nvidia.com/gpu", "8", "6"))
LENT = a_queue(replace(quota("x", "cpu", "4", "2"), cohort_free="6", cohort_most="9"), cohort="all")
OTHERS_WAIT = "Workloads that wait in the queue, and may come first: 3"
WAITING, EXCEEDS = PendingCode.WAITING_FOR_QUOTA, PendingCode.EXCEEDS_MAX_QUOTA


@pytest.mark.parametrize(
    ("queue", "pod_sets", "code", "detail"),
    [
        (CPU, [a_pod_set(cpu="2")], None, ""),
        (CPU, [a_pod_set(2, cpu="1")], None, ""),
        (CPU, [a_pod_set()], None, ""),
        (
            replace(CPU, pending=3),
            [a_pod_set(cpu="2")],
            None,
            OTHERS_WAIT,
        ),
        (CPU, [], None, ""),
        (CPU, [a_pod_set(4, cpu="1")], WAITING, "cpu: 4 requested, 2 free in flavor x"),
        (CPU, [a_pod_set(cpu="2100m")], WAITING, "cpu: 2100m requested, 2 free in flavor x"),
        (CPU, [a_pod_set(5, cpu="1")], EXCEEDS, "cpu: 5 requested, 4 in all in flavor x"),
        # The second pod set finds what the first leaves.
        (CPU, [a_pod_set(cpu="1"), a_pod_set(cpu="1500m")], WAITING, "cpu: 1500m requested, 1 free in flavor x"),
        (
            CPU,
            [a_pod_set(cpu="1", gpu="1")],
            PendingCode.NO_MATCHING_FLAVOR,
            "nvidia.com/gpu: requested, and research has no quota for it",
        ),
        (CPU, [a_pod_set(cpu="1", gpu="0")], None, ""),
        # More is in use than the quota, which was reduced.
        (a_queue(quota("x", "cpu", "2", "3")), [a_pod_set(cpu="1")], WAITING, "cpu: 1 requested, 0 free in flavor x"),
        (TWO, [a_pod_set(cpu="2")], None, ""),
        (TWO, [a_pod_set(cpu="1"), a_pod_set(cpu="2500m")], None, ""),
        (
            TWO,
            [a_pod_set(cpu="3")],
            WAITING,
            "cpu: 3 requested, 1 free in flavor x; cpu: 3 requested, 2500m free in flavor y",
        ),
        # Resources of a group have the same flavor.
        (PAIR, [a_pod_set(cpu="2", memory="2Gi")], None, ""),
        (PAIR, [a_pod_set(cpu="2", memory="32Gi")], None, ""),
        (
            PAIR,
            [a_pod_set(cpu="3", memory="3Gi")],
            WAITING,
            "memory: 3Gi requested, 2Gi free in flavor x; cpu: 3 requested, 2 free in flavor y",
        ),
        (
            PAIR,
            [a_pod_set(cpu="3", memory="32Gi")],
            EXCEEDS,
            "memory: 32Gi requested, 8Gi in all in flavor x; cpu: 3 requested, 2 in all in flavor y",
        ),
        (CPU, [a_pod_set(cpu="3", claims=True)], WAITING, "cpu: 3 requested, 2 free in flavor x"),
        (APART, [a_pod_set(cpu="4", gpu="2")], None, ""),
        (APART, [a_pod_set(3, cpu="1", gpu="1")], WAITING, "nvidia.com/gpu: 3 requested, 2 free in flavor gpus"),
        (
            a_queue(quota("x", "cpu", "4", "0"), quota("x", "pods", "5", "3")),
            [a_pod_set(3)],
            WAITING,
            "pods: 3 requested, 2 free in flavor x",
        ),
        # In a cohort, its own quota says nothing.
        (LENT, [a_pod_set(cpu="6")], None, ""),
        (LENT, [a_pod_set(cpu="7")], WAITING, "cpu: 7 requested, 6 free in flavor x"),
        (LENT, [a_pod_set(cpu="10")], EXCEEDS, "cpu: 10 requested, 9 in all in flavor x"),
        (
            replace(CPU, active=False, message="LocalQueue is stopped"),
            [a_pod_set()],
            PendingCode.QUEUE_STOPPED,
            "LocalQueue is stopped",
        ),
        (
            replace(CPU, selected=False),
            [a_pod_set(cpu="64")],
            PendingCode.NO_MATCHING_FLAVOR,
            "research admits no jobs of this namespace: its namespaceSelector does not select it",
        ),
        (replace(CPU, selected=None), [a_pod_set(cpu="5")], EXCEEDS, "cpu: 5 requested, 4 in all in flavor x"),
    ],
)
def test_a_job_waits_for_what_its_queue_lacks(
    queue: QueueStatus, pod_sets: list[PodSetPlan], code: PendingCode | None, detail: str
) -> None:
    found = room_for_job(pod_sets, queue)
    assert (found.code, found.detail) == (code, detail)
    assert found.outcome == (RoomOutcome.HAS_ROOM if code is None else RoomOutcome.WOULD_WAIT)


@pytest.mark.parametrize(
    ("queue", "claims", "detail"),
    [
        (a_queue(quota("x", "cpu", None, "1")), False, "how much of the quota of research is in use is not known"),
        (a_queue(quota("x", "cpu", "4", None)), False, "how much of the quota of research is in use is not known"),
        (
            replace(CPU, cohort="all"),
            False,
            "how much of the quota of research and the cohort all is in use is not known",
        ),
        (CPU, True, "the devices of resourceClaims are not compared with the quota"),
        (
            replace(CPU, selected=None),
            False,
            "whether the namespaceSelector of research selects this namespace is not known",
        ),
    ],
)
def test_what_depends_on_the_unknown_is_not_claimed(queue: QueueStatus, *, claims: bool, detail: str) -> None:
    found = room_for_job([a_pod_set(cpu="2", claims=claims)], queue)
    assert (found.outcome, found.code, found.detail) == (RoomOutcome.UNKNOWN, None, detail)

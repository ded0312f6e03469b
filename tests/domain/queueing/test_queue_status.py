"""The status of a queue: when it is active, what of its quota is in use, and in which order its jobs wait."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.kubernetes.queueing import ClusterQueue, LocalQueue, Workload
from app.domain.queueing.cohorts import CohortShare, QuotaKey
from app.domain.queueing.queue_status import (
    MOST_PENDING_JOBS,
    FlavorQuota,
    JobWorkload,
    QueuedJob,
    QueueStatus,
    is_admitted,
    job_of,
    queue_status,
    waits,
)
from app.domain.vocabulary import PendingCode

ACTIVE = {"type": "Active", "status": "True", "reason": "Ready"}
STOPPED = {"type": "Active", "status": "False", "reason": "Stopped", "message": "LocalQueue is stopped"}
CLUSTER_IS_INACTIVE = {
    "type": "Active",
    "status": "False",
    "reason": "ClusterQueueIsInactive",
    "message": "Can't submit new workloads to clusterQueue",
}
LACKS_FLAVOR = {"type": "Active", "status": "False", "reason": "FlavorNotFound", "message": "lacks\nthe flavor big"}
LACKS = "insufficient unused quota for cpu in flavor big, 1 more needed"
PENDING = ("QuotaReserved", "False", "2026-03-01T10:00:05Z", LACKS)
RESERVED = ("QuotaReserved", "True", "2026-03-01T10:00:05Z", "")
ADMITTED = ("Admitted", "True", "2026-03-01T10:00:05Z", "")
FINISHED = ("Finished", "True", "2026-03-01T10:00:05Z", "")


def totals(flavor: str, **amounts: Any) -> dict[str, Any]:
    return {"name": flavor, "resources": [{"name": name, "total": total} for name, total in amounts.items()]}


def a_local_queue(*conditions: dict[str, str], used: Sequence[dict[str, Any]] = ()) -> LocalQueue:
    status = {
        "conditions": list(conditions),
        "pendingWorkloads": 7,
        "admittedWorkloads": 2,
        "flavorsReservation": list(used),
    }
    metadata = {"namespace": "team-a", "name": "team"}
    return msgspec.convert({"metadata": metadata, "spec": {"clusterQueue": "research"}, "status": status}, LocalQueue)


def a_cluster_queue(*conditions: dict[str, str], cohort: str = "") -> ClusterQueue:
    big = {"name": "big", "resources": [{"name": "cpu", "nominalQuota": 4}, {"name": "memory", "nominalQuota": "8Gi"}]}
    small = {"name": "small", "resources": [{"name": "cpu", "nominalQuota": "500m"}]}
    spec = {"resourceGroups": [{"flavors": [big, small]}], "cohortName": cohort}
    status = {"conditions": list(conditions), "flavorsReservation": [totals("big", cpu="3", memory="1Gi")]}
    return msgspec.convert({"metadata": {"name": "research"}, "spec": spec, "status": status}, ClusterQueue)


def uid_of(number: int) -> str:
    return str(UUID(int=number))


def a_workload(
    number: int, *conditions: tuple[str, str, str, str], minute: int = 0, priority: int = 0, **more: Any
) -> Workload:
    """The Workload of the job with this number. Conditions are type, status, time and message."""
    uid = uid_of(number)
    labels = {"jobgate.dev/job-uid": uid}
    names = ("type", "status", "lastTransitionTime", "message")
    return msgspec.convert(
        {
            "metadata": {
                "namespace": "team-a",
                "name": f"jobgate-{uid}",
                "uid": f"w-{number}",
                "labels": labels,
                "creationTimestamp": f"2026-03-01T10:{minute:02}:00Z",
                **more.pop("metadata", {}),
            },
            "spec": {"queueName": "team", "priority": priority, **more},
            "status": {"conditions": [dict(zip(names, item, strict=True)) for item in conditions or (PENDING,)]},
        },
        Workload,
        strict=False,
    )


def a_status(
    *waiting: Workload, positions: Mapping[int, int] | None = None, cluster: ClusterQueue | None = None
) -> QueueStatus:
    places = {("team-a", f"jobgate-{uid_of(number)}"): place for number, place in (positions or {}).items()}
    jobs = [JobWorkload(workload=item, kind="MxJob", name=f"job-{item.metadata.uid[2:]}") for item in waiting]
    return queue_status(a_local_queue(ACTIVE), cluster or a_cluster_queue(ACTIVE), jobs, places)


@pytest.mark.parametrize(
    ("own", "of_cluster", "active", "message"),
    [
        ((ACTIVE,), (ACTIVE,), True, ""),
        ((ACTIVE,), (), True, ""),
        ((STOPPED,), (ACTIVE,), False, "LocalQueue is stopped"),
        ((STOPPED,), (LACKS_FLAVOR,), False, "LocalQueue is stopped"),
        ((CLUSTER_IS_INACTIVE,), (LACKS_FLAVOR,), False, "lacks the flavor big"),
        ((ACTIVE,), (LACKS_FLAVOR,), False, "lacks the flavor big"),
        ((CLUSTER_IS_INACTIVE,), None, False, "Can't submit new workloads to clusterQueue"),
        ((), (ACTIVE,), False, "Kueue has not reported yet whether the queue is active"),
    ],
)
def test_a_queue_says_why_it_is_not_active(
    own: Sequence[dict[str, str]], of_cluster: Sequence[dict[str, str]] | None, message: str, *, active: bool
) -> None:
    cluster = None if of_cluster is None else a_cluster_queue(*of_cluster)
    found = queue_status(a_local_queue(*own), cluster, (), {})
    assert (found.active, found.message, found.cluster_queue) == (active, message, "research")


def an_expression(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "team", "operator": operator, "values": values}]}


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        (None, {}, False),
        ({}, None, True),
        ({"matchLabels": {"team": "a"}}, {"team": "a", "zone": "b"}, True),
        ({"matchLabels": {"team": "a", "zone": "a"}}, {"team": "a", "zone": "b"}, False),
        ({"matchLabels": {"team": "a"}}, {}, False),
        ({"matchLabels": {"team": "a"}}, None, None),
        (an_expression("In", "a", "b"), {"team": "b"}, True),
        (an_expression("NotIn", "a", "b"), {}, True),
        (an_expression("NotIn", "a", "b"), {"team": "b"}, False),
        (an_expression("Exists"), {"team": ""}, True),
        (an_expression("DoesNotExist"), {"team": ""}, False),
        (an_expression("DoesNotExist"), None, None),
        (an_expression("Like", "a"), {"team": "a"}, None),
        ({**an_expression("Exists"), "matchLabels": {"zone": "b"}}, {"team": "a"}, False),
    ],
)
def test_a_cluster_queue_selects_namespaces(
    selector: dict[str, Any] | None, labels: Mapping[str, str] | None, *, selected: bool | None
) -> None:
    cluster = msgspec.convert({"spec": {"namespaceSelector": selector}}, ClusterQueue)
    assert queue_status(a_local_queue(ACTIVE), cluster, (), {}, labels_of_namespace=labels).selected is selected


def test_quotas_are_those_of_the_cluster_queue_with_the_share_of_the_queue() -> None:
    local = a_local_queue(ACTIVE, used=[totals("big", cpu="1", memory="0")])
    found = queue_status(local, a_cluster_queue(ACTIVE, cohort="all"), (), {})
    assert found.quotas == (
        FlavorQuota(flavor="big", resource="cpu", nominal="4", used="3", used_by_queue="1"),
        FlavorQuota(flavor="big", resource="memory", nominal="8Gi", used="1Gi", used_by_queue="0"),
        FlavorQuota(flavor="small", resource="cpu", nominal="500m"),
    )
    assert (found.pending, found.admitted, found.cohort) == (7, 2, "all")


def test_the_quotas_of_a_cohort_have_what_can_be_used_of_them() -> None:
    shares = {QuotaKey("big", "memory"): CohortShare(free=Decimal(2**30), most=Decimal(2**31))}
    found = queue_status(a_local_queue(ACTIVE), a_cluster_queue(ACTIVE, cohort="all"), (), {}, shares)
    assert [(quota.cohort_free, quota.cohort_most) for quota in found.quotas] == [
        (None, None),
        ("1073741824", "2147483648"),
        (None, None),
    ]


def test_without_the_cluster_queue_its_quota_is_not_known() -> None:
    found = queue_status(a_local_queue(ACTIVE, used=[totals("big", cpu=2)]), None, (), {})
    assert found.quotas == (FlavorQuota(flavor="big", resource="cpu", used_by_queue="2"),)


@pytest.mark.parametrize(
    ("workload", "waiting", "admitted"),
    [
        (a_workload(1), True, False),
        (msgspec.structs.replace(a_workload(1), status=Workload().status), True, False),
        (a_workload(1, RESERVED), False, False),
        (a_workload(1, RESERVED, ADMITTED), False, True),
        (a_workload(1, ADMITTED, FINISHED), False, False),
        (a_workload(1, PENDING, FINISHED), False, False),
        (a_workload(1, active=False), False, False),
        (a_workload(1, metadata={"deletionTimestamp": "2026-03-01T10:00:05Z"}), False, False),
    ],
)
def test_only_a_workload_without_quota_waits(workload: Workload, *, waiting: bool, admitted: bool) -> None:
    assert (waits(workload), is_admitted(workload)) == (waiting, admitted)


@pytest.mark.parametrize(
    ("metadata", "uid"),
    [
        ({}, uid_of(1)),
        # The name is that of one Workload of a namespace.
        ({"name": f"jobgate-{uid_of(2)}"}, None),
        ({"name": f"jobgate-{uid_of(1)}-2"}, None),
        ({"name": "jobgate-x", "labels": {"jobgate.dev/job-uid": "x"}}, None),
        ({"labels": {}}, None),
    ],
)
def test_only_the_first_workload_of_a_job_names_it(metadata: dict[str, Any], uid: str | None) -> None:
    assert job_of(a_workload(1, metadata=metadata)) == uid


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["QuotaReserved", "Admitted", "Finished", "Evicted", "Requeued", "PodsReady", "Made-up"]),
            st.sampled_from(["True", "False", "Unknown", ""]),
            st.just("2026-03-01T10:00:05Z"),
            st.sampled_from(["", LACKS, "LocalQueue team is stopped", "x" * 400, "a\nb"]),
        )
    )
)
def test_whatever_a_status_says_a_job_that_waits_has_a_reason(conditions: list[tuple[str, str, str, str]]) -> None:
    """A tenant may have rights on the status of Workloads. An error would stop the controller."""
    workload = a_workload(1, *conditions)
    if waits(workload):
        (job,) = a_status(workload).jobs
        assert job.code in PendingCode
        assert "\n" not in job.message


def test_a_job_that_waits_has_the_reason_of_kueue() -> None:
    (job,) = a_status(a_workload(1, priority=5), positions={1: 3}).jobs
    assert job == QueuedJob(
        uid=uid_of(1),
        kind="MxJob",
        name="job-1",
        priority=5,
        since=a_workload(1).metadata.creation_timestamp,
        code=PendingCode.WAITING_FOR_QUOTA,
        message=LACKS,
        position=3,
    )


def test_the_wait_of_an_evicted_job_begins_when_its_quota_is_given_back() -> None:
    requeued = ("Requeued", "True", "2026-03-01T09:00:00Z", "")
    (job,) = a_status(a_workload(1, PENDING, requeued)).jobs
    assert str(job.since) == "2026-03-01 10:00:05+00:00"


@pytest.mark.parametrize(
    ("waiting", "positions", "order"),
    [
        ([a_workload(1, minute=2), a_workload(2, minute=1)], {}, [2, 1]),
        ([a_workload(1, minute=1), a_workload(2, minute=2, priority=1)], {}, [2, 1]),
        ([a_workload(2), a_workload(1)], {}, [1, 2]),
        ([a_workload(1, minute=1), a_workload(2, minute=2)], {1: 9, 2: 4}, [2, 1]),
        # Kueue tells only the first places.
        ([a_workload(1, priority=1), a_workload(2, minute=3), a_workload(3, minute=1)], {2: 7}, [2, 1, 3]),
    ],
)
def test_jobs_wait_by_position_then_by_priority_and_age(
    waiting: list[Workload], positions: dict[int, int], order: list[int]
) -> None:
    found = a_status(*waiting, positions=positions)
    assert [job.uid for job in found.jobs] == list(map(uid_of, order))


def test_only_the_first_jobs_are_kept() -> None:
    count = MOST_PENDING_JOBS + 20
    found = a_status(*(a_workload(number, priority=number) for number in range(count)))
    assert found.queued == count
    assert [job.priority for job in found.jobs] == list(range(count - 1, 19, -1))


def test_a_long_message_is_cut() -> None:
    (job,) = a_status(a_workload(1, ("QuotaReserved", "False", "2026-03-01T10:00:05Z", "x" * 5000))).jobs
    assert (len(job.message), job.message[-1]) == (256, "…")

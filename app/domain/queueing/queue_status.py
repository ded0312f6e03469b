"""What users see of a LocalQueue: its quota, how much of it is in use, and the jobs that wait in their order."""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from app.domain.errors import shorten
from app.domain.kubernetes import labels
from app.domain.kubernetes.conditions import by_type, is_true, message_line
from app.domain.kubernetes.quantity import format_quantity
from app.domain.kubernetes.queueing import ClusterQueue, FlavorTotals, LocalQueue, Workload
from app.domain.queueing.cohorts import NO_COHORT, CohortShares, QuotaKey
from app.domain.queueing.workload_status import Unadmitted, observe_workload
from app.domain.vocabulary import PendingCode

MOST_PENDING_JOBS: Final = 100
"""The pending jobs of a queue that are stored. A queue can have thousands, and the first ones matter most."""
Positions: TypeAlias = Mapping[tuple[str, str], int]
"""Places of Workloads in their ClusterQueues, by namespace and name."""
_Totals: TypeAlias = Mapping[QuotaKey, str]
_MOST_OF_MESSAGE: Final = 256  # characters; the status of the job has the whole message


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorQuota:
    """The quota of a resource in a flavor, as Kueue writes quantities. None is what is not known.

    `used` is what all Workloads of the ClusterQueue hold, and `used_by_queue` those of the LocalQueue.
    `cohort_free` is what a ClusterQueue of a cohort can still use with what others lend, and `cohort_most` what it
    could use if no queue of the cohort used any.
    """

    flavor: str
    resource: str
    nominal: str | None = None
    used: str | None = None
    used_by_queue: str | None = None
    cohort_free: str | None = None
    cohort_most: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWorkload:
    """The first Workload of a job. `kind` and `name` are those that are stored: any client can change labels."""

    workload: Workload
    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """A job that waits in a queue since `since`. Without a `position`, Kueue has not reported its place."""

    uid: str
    kind: str
    name: str
    priority: int
    since: datetime | None
    code: PendingCode
    message: str
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """A LocalQueue. `message` says why it is not active.

    `pending` and `admitted` count the Workloads of all clients, as Kueue reports them. `queued` counts the jobs of this
    installation that wait, of which `jobs` has the first. The queues of a `cohort` lend each other quota. `selected`
    says whether the ClusterQueue admits jobs of the namespace; None if that is not known.
    """

    cluster_queue: str
    cohort: str = ""
    active: bool = False
    message: str = ""
    selected: bool | None = True
    quotas: tuple[FlavorQuota, ...] = ()
    pending: int = 0
    admitted: int = 0
    queued: int = 0
    jobs: tuple[QueuedJob, ...] = ()


def queue_status(
    local: LocalQueue,
    cluster: ClusterQueue | None,
    waiting: Iterable[JobWorkload],
    positions: Positions,
    shares: CohortShares = NO_COHORT,
    labels_of_namespace: Mapping[str, str] | None = None,
) -> QueueStatus:
    """Return the status of a queue.

    Args:
        local: the LocalQueue.
        cluster: its ClusterQueue; None if it does not exist or cannot be read.
        waiting: the Workloads of jobs that wait in the queue (`waits`).
        positions: places in the ClusterQueue, from 1, as far as Kueue reports them.
        shares: what the ClusterQueue can use of its cohort.
        labels_of_namespace: the labels of the namespace; None if they cannot be read.
    """
    found = list(waiting)
    first = heapq.nsmallest(MOST_PENDING_JOBS, found, key=lambda job: _order(job.workload, positions))
    active, message = _activity(local, cluster)
    return QueueStatus(
        cluster_queue=local.spec.cluster_queue,
        cohort=cluster.spec.cohort_name if cluster is not None else "",
        active=active,
        message=message,
        selected=_selects(cluster, labels_of_namespace),
        quotas=_quotas(local, cluster, shares),
        pending=local.status.pending_workloads,
        admitted=local.status.admitted_workloads,
        queued=len(found),
        jobs=tuple(_job(job, _position(job.workload, positions)) for job in first),
    )


def job_of(workload: Workload) -> str | None:
    """Return the uid of the job in the name and label of its first Workload.

    None for a further one and that of another client. Only its owner proves that it is the job's.
    """
    uid = workload.metadata.labels.get(labels.JOB_UID, "")
    return uid if labels.is_job_uid(uid) and workload.metadata.name == labels.anchor_name(uid) else None


def waits(workload: Workload) -> bool:
    """Return whether the Workload of a job waits for quota."""
    if _holds_quota(workload):
        return False
    return workload.spec.active and workload.metadata.deletion_timestamp is None


def is_admitted(workload: Workload) -> bool:
    """Return whether the Workload of a job that has not ended is admitted."""
    conditions = by_type(workload.status.conditions)
    return is_true(conditions, "Admitted") and not is_true(conditions, "Finished")


def _holds_quota(workload: Workload) -> bool:
    """Return whether the Workload has quota, or needs none because its job has ended.

    A client with rights on the status can set one condition without the others.
    """
    conditions = by_type(workload.status.conditions)
    return any(is_true(conditions, kind) for kind in ("QuotaReserved", "Admitted", "Finished"))


def _position(workload: Workload, positions: Positions) -> int | None:
    return positions.get((workload.metadata.namespace, workload.metadata.name))


def _order(workload: Workload, positions: Positions) -> tuple[bool, int, int, float, str]:
    """Return what sorts the jobs of a queue: by their known places, then by priority and age, as Kueue does."""
    metadata, position = workload.metadata, _position(workload, positions)
    created = metadata.creation_timestamp
    age = created.timestamp() if created is not None else 0.0
    return position is None, position or 0, -workload.spec.priority, age, metadata.uid


def _job(job: JobWorkload, position: int | None) -> QueuedJob:
    workload = job.workload
    verdict = observe_workload(workload, {}).verdict
    assert isinstance(verdict, Unadmitted), "a Workload that waits has no quota"
    return QueuedJob(
        uid=workload.metadata.labels[labels.JOB_UID],
        kind=job.kind,
        name=job.name,
        priority=workload.spec.priority,
        since=_queued_at(workload),
        code=verdict.code,
        message=shorten(verdict.message, _MOST_OF_MESSAGE),
        position=position,
    )


def _queued_at(workload: Workload) -> datetime | None:
    """Return when the present wait began: with the Workload, or when its job gave its last quota back."""
    conditions = by_type(workload.status.conditions)
    if "Requeued" in conditions and "QuotaReserved" in conditions:
        return conditions["QuotaReserved"].last_transition_time
    return workload.metadata.creation_timestamp


def _activity(local: LocalQueue, cluster: ClusterQueue | None) -> tuple[bool, str]:
    """Return whether the queue is active, and why it is not."""
    own = by_type(local.status.conditions).get("Active")
    if own is None:
        return False, "Kueue has not reported yet whether the queue is active"
    of_cluster = by_type(cluster.status.conditions).get("Active") if cluster is not None else None
    # Only the ClusterQueue reports which object it lacks. A LocalQueue reports its state a moment later.
    if of_cluster is not None and of_cluster.status != "True" and own.reason != "Stopped":
        return False, message_line(of_cluster, _MOST_OF_MESSAGE)
    return own.status == "True", "" if own.status == "True" else message_line(own, _MOST_OF_MESSAGE)


def _selects(cluster: ClusterQueue | None, labels_of_namespace: Mapping[str, str] | None) -> bool | None:
    """Return whether the ClusterQueue admits Workloads of a namespace with these labels; None if that is not known."""
    if cluster is None:
        return None
    selector = cluster.spec.namespace_selector
    return selector.selects(labels_of_namespace) if selector is not None else False


def _quotas(local: LocalQueue, cluster: ClusterQueue | None, shares: CohortShares) -> tuple[FlavorQuota, ...]:
    own = _totals(local.status.flavors_reservation)
    if cluster is None:
        return tuple(FlavorQuota(flavor=key.flavor, resource=key.resource, used_by_queue=own[key]) for key in own)
    used = _totals(cluster.status.flavors_reservation)
    return tuple(
        _quota(QuotaKey(flavor.name, resource.name), str(resource.nominal_quota), used, own, shares)
        for group in cluster.spec.resource_groups
        for flavor in group.flavors
        for resource in flavor.resources
    )


def _quota(key: QuotaKey, nominal: str, used: _Totals, own: _Totals, shares: CohortShares) -> FlavorQuota:
    share = shares.get(key)
    return FlavorQuota(
        flavor=key.flavor,
        resource=key.resource,
        nominal=nominal,
        used=used.get(key),
        used_by_queue=own.get(key),
        cohort_free=None if share is None else format_quantity(share.free),
        cohort_most=None if share is None else format_quantity(share.most),
    )


def _totals(flavors: Iterable[FlavorTotals]) -> _Totals:
    return {QuotaKey(flavor.name, item.name): str(item.total) for flavor in flavors for item in flavor.resources}

"""The views of queues: their quota, and the jobs that wait in them."""

from datetime import datetime
from uuid import UUID

from app.api.views.base import Int32, NextPageToken, View
from app.api.views.closed_sets import JobKindName, KueueStateName, PendingReasonCode
from app.db.queues import KueueRecord, QueueRow
from app.domain.queueing.queue_status import FlavorQuota, QueuedJob


class QuotaView(View):
    """The quota of a resource in a flavor, as quantities of Kubernetes. Null is what is not known."""

    flavor: str
    """Name of the ResourceFlavor."""
    resource: str
    """Name of the resource, such as cpu."""
    nominal_quota: str | None
    """The quota of the ClusterQueue, which all its LocalQueues share."""
    used: str | None
    """What all Workloads of the ClusterQueue hold."""
    used_by_queue: str | None
    """What the Workloads of this LocalQueue hold."""
    cohort_free: str | None
    """What the ClusterQueue can still use, with what the others of its cohort lend; null without a cohort."""
    cohort_most: str | None
    """What the ClusterQueue could use if no queue of its cohort used any; null without a cohort."""


class QueuedJobView(View):
    """A job that waits in a queue."""

    position: Int32 | None
    """Place of the job in the ClusterQueue, from 1; null if Kueue does not report it."""
    kind: JobKindName
    name: str
    uid: UUID
    priority: Int32
    """The priority of its Workload: higher ones come first."""
    since: datetime | None
    """When the present wait began; null if that is unknown."""
    code: PendingReasonCode
    message: str


class JobQueueView(View):
    """A LocalQueue of Kueue, as the controller observes it."""

    namespace: str
    name: str
    cluster_queue: str
    """The ClusterQueue, whose quota the queue uses."""
    cohort: str | None
    """The cohort of the ClusterQueue, whose members lend each other quota; null if it has none, or none is known."""
    active: bool
    """Whether Kueue admits jobs of the queue."""
    message: str
    """Why the queue is not active; empty if it is."""
    resources: list[QuotaView]
    """The quota of each resource of each flavor."""
    pending: Int32
    """The Workloads that wait in the queue, of all clients, as Kueue reports them."""
    admitted: Int32
    """The admitted Workloads of the queue, of all clients, as Kueue reports them."""
    pending_jobs: list[QueuedJobView]
    """The jobs that wait, by their positions, then by priority and age: the first 100, in a list of queues 10."""
    pending_jobs_omitted: Int32
    """The number of further jobs that wait."""
    observed_at: datetime
    """When the controller last observed a change of the queue."""


class KueueView(View):
    """What the controller knows of Kueue."""

    state: KueueStateName
    """Whether `items` has all queues: only if it is `listed`."""
    message: str
    """Why the state is not `listed`, or what jobgate cannot read or write in spite of it; otherwise empty."""


class JobQueuePage(View):
    """A page of queues, by namespace and name."""

    kueue: KueueView
    items: list[JobQueueView]
    next_page_token: NextPageToken


def page_view(rows: list[QueueRow], known: KueueRecord, next_page_token: str | None) -> JobQueuePage:
    return JobQueuePage(
        kueue=KueueView(state=known.state, message=known.message),
        items=list(map(queue_view, rows)),
        next_page_token=next_page_token,
    )


def queue_view(row: QueueRow) -> JobQueueView:
    status = row.status
    return JobQueueView(
        namespace=row.namespace,
        name=row.name,
        cluster_queue=status.cluster_queue,
        cohort=status.cohort or None,
        active=status.active,
        message=status.message,
        resources=list(map(_quota, status.quotas)),
        pending=status.pending,
        admitted=status.admitted,
        pending_jobs=list(map(_job, status.jobs)),
        pending_jobs_omitted=status.queued - len(status.jobs),
        observed_at=row.observed_at,
    )


def _quota(found: FlavorQuota) -> QuotaView:
    return QuotaView(
        flavor=found.flavor,
        resource=found.resource,
        nominal_quota=found.nominal,
        used=found.used,
        used_by_queue=found.used_by_queue,
        cohort_free=found.cohort_free,
        cohort_most=found.cohort_most,
    )


def _job(found: QueuedJob) -> QueuedJobView:
    return QueuedJobView.of(found)

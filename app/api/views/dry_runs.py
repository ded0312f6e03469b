"""The answers to dry runs: what a submission would store, which Kubernetes objects it would create, and whether the
cluster and the queue would accept them.
"""

from datetime import datetime
from typing import Any

from app.api.views.base import Int32, View
from app.api.views.closed_sets import PendingReasonCode, TaskRestartPolicy
from app.api.views.objects import JobWarningView
from app.domain.cluster_check import FindingEffect
from app.domain.queueing.room import RoomOutcome
from app.services.reading.queues import QueueCheck


class TaskPlanView(View):
    """A task of a planned job."""

    name: str
    replicas: Int32
    restart_policy: TaskRestartPolicy
    restart_limit: Int32 | None


class PlanView(View):
    """What jobgate would make of the manifest: tasks, names of pods and Services, and deadlines in seconds."""

    tasks: list[TaskPlanView]
    pods: list[str]
    services: list[str]
    active_deadline_seconds: int | None
    pending_deadline_seconds: int | None
    start_deadline_seconds: int | None
    ttl_seconds_after_finished: int | None


class ResourceDryRunView(View):
    """What a submission would store. A dry run stores nothing."""

    dry_run: bool
    manifest: dict[str, Any]
    warnings: list[JobWarningView]
    """What jobgate warns about."""


class ClusterFindingView(View):
    """A refusal or a warning of the cluster about one object of a job."""

    object: str
    """Kind and name of the object."""
    task: str | None
    """Name of the task whose replica the object belongs to; null if it belongs to the whole job."""
    pointer: str
    """The field of `manifest` that the object was made from, as far as it is known; empty for the whole job."""
    effect: FindingEffect
    """Fails or Waits: the cluster refuses the object, and the job would fail or wait. Warns: the cluster warns."""
    code: str
    """The reason or the pending reason that the job would have; `Warning` for a warning."""
    detail: str
    """The message of the cluster."""


class ClusterCheckView(View):
    """What the cluster answers to a server-side dry run of the objects, one replica of each task."""

    is_complete: bool
    """Whether the cluster has checked all of these objects."""
    detail: str
    """Why the check is not complete; empty if it is."""
    findings: list[ClusterFindingView]
    """The refusals and warnings of the cluster."""


class QueueCheckView(View):
    """Whether the job has room now: within the limits of live pods, and in its queue, by what the controller has
    recorded of it.

    Kueue decides later and may decide otherwise: priorities, preemption and the nodes of flavors are not considered.
    """

    name: str | None
    """The LocalQueue; null if the job has none, or it is not known whether the namespace has a default one."""
    outcome: RoomOutcome
    """`HasRoom`, `WouldWait`, `WouldBeRefused` (409 `TooManyPods`), `NoKueue` (the cluster does not serve it, or it is
    off), or `Unknown`."""
    code: PendingReasonCode | None
    """The pending reason of a job that would wait; otherwise null."""
    detail: str
    """What the queue or the namespace lacks, or why that is not known."""
    observed_at: datetime | None
    """The time up to which the record was true; null if there is none."""
    stale: bool
    """Whether `observedAt` is too long ago to rely on the record, as in the header Jobgate-Stale of polls."""


def queue_check_view(check: QueueCheck) -> QueueCheckView:
    return QueueCheckView(
        name=check.queue,
        outcome=check.room.outcome,
        code=check.room.code,
        detail=check.room.detail,
        observed_at=check.freshness.observed_at,
        stale=check.freshness.stale,
    )


class DryRunView(ResourceDryRunView):
    """What a submission would store, and the Kubernetes objects that it would create. A dry run stores nothing.

    `manifests` has the objects of the job itself and of the first replicas of each task, at most about 100 objects and
    4 MiB. `manifestsOmitted` is the number of the other objects.
    """

    plan: PlanView
    manifests: list[dict[str, Any]]
    manifests_omitted: Int32
    cluster: ClusterCheckView | None
    """What the cluster would answer; null with `dryRun=Local`."""
    queue: QueueCheckView | None
    """Whether the job would wait or be refused now; null without a queue, if its pods fit: it needs no admission."""


class ResourceDryRunList(View):
    """What a submission of several objects would store, in the order of the request."""

    items: list[ResourceDryRunView]


class DryRunList(View):
    """What a submission of several jobs would store and create, in the order of the request."""

    items: list[DryRunView]

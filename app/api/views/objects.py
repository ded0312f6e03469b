"""The models of objects: jobs and other resources, their status, history and events."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from app.api.views.base import Int32, NextPageToken, View
from app.api.views.closed_sets import (
    ChangeType,
    ConditionStatus,
    EventOrigin,
    JobChangeType,
    JobKindName,
    PendingReasonCode,
)
from app.domain.vocabulary import JobPhase, ScaleOutcome


class AggregateView(View):
    """Number of replicas in each phase. The sum is the desired number of replicas."""

    creating: Int32 = 0
    pending: Int32 = 0
    running: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    unknown: Int32 = 0
    deleted: Int32 = 0


class PendingReasonView(View):
    """Why replicas do not run, or the fault of replicas that run."""

    code: PendingReasonCode
    message: str
    since: datetime | None
    replicas: list[str]
    """Names of the affected replicas, the first 20."""
    count: Int32
    started: bool
    """Whether these replicas run, and a container of them has this fault. Otherwise they wait."""


class JobWarningView(View):
    """A field of a valid manifest that does not have the effect that its author may expect."""

    source: Literal["jobgate", "cluster"]
    """`jobgate`, which accepted the manifest, or the `cluster`, which created the objects of the job or SampleSet."""
    task: str | None
    pointer: str
    """JSON pointer to the field of the manifest; empty in a warning of the cluster, whose message names the field."""
    message: str


class FirstFailureView(View):
    """The first failed attempt of a job."""

    replica: str
    """Task and rank of the replica, for example `worker[0]`."""
    attempt: Int32
    """Number of the attempt, from 1."""
    node: str | None
    """Name of the node; null if the pod had none."""
    container: str | None
    """Name of the container that failed; null if none is known."""
    exit_code: Int32 | None
    """Exit code of the container that failed; null if none is known."""
    signal: Int32 | None
    """Number of the signal that ended the container; null if none did."""
    reason: str | None
    """The reason that the cluster reports, for example `Error`, `OOMKilled` or `StartError`."""
    message: str | None
    """The last line of the message that the container left or the cluster reports; null if there is none."""
    last_lines: list[str] | None
    """The last lines of the log of the container that failed, at most 10; null if they are not stored."""
    at: datetime
    """When the attempt ended."""


class EvictionView(View):
    """Why and when Kueue last took the admission of a job back."""

    reason: str
    """Kueue's reason, for example `Preempted` or `PodsReadyTimeout`, or `WorkloadDeleted`."""
    message: str
    """Kueue's message about it."""
    at: datetime | None
    """When jobgate noticed it; null if an earlier version did."""
    preempted_by: UUID | None
    """The uid of the job that the admission was taken back for; null if Kueue names none. It may be the uid of a job of
    another client of Kueue, or of one that the caller may not see."""


class QueueingView(View):
    """The queue of a job, and what Kueue has decided. That of a job that has ended stays as it was at its end."""

    name: str
    """Name of the LocalQueue, in the namespace of the job."""
    admitted: bool
    """Whether the job is admitted, so that its replicas may run."""
    queued_at: datetime | None
    """When the job last began to wait for its admission; null if an earlier version did not record it."""
    admitted_at: datetime | None
    """When the job was admitted after `queuedAt`; null while it waits, or if an earlier version did not record it."""
    eviction: EvictionView | None
    """The present or last eviction; null if there was none."""


class CommonStatusView(View):
    """The fields of a status that every kind has."""

    phase: str
    reason: str
    message: str
    observed_generation: int
    """The generation that this status reflects. An edit is carried out when it reaches the object's `generation`."""
    started_at: datetime | None
    finished_at: datetime | None
    observed_at: datetime | None
    warnings: list[JobWarningView]
    """What a client should know about the manifest: those of jobgate, and the first 20 of the cluster."""


class StatusView(CommonStatusView):
    """The uniform status of a job of any kind."""

    phase: JobPhase
    aggregate: AggregateView
    pending_reasons: list[PendingReasonView]
    restarts_in_place: Int32
    """How often the kubelet has restarted containers of the current pods: sidecars, and containers with restart rules.
    The restart limit does not count these restarts."""
    still_running: Int32
    """How many replicas run although the job has ended, because its clean-up policy keeps them. A cancel stops them."""
    first_failure: FirstFailureView | None
    """It stays through restarts, resizes and pauses, and after the end of the job; null if no attempt has failed."""
    queue: QueueingView | None
    """The queue of the job; null for a job without one, while it is paused, and until jobgate has determined it."""
    observed_at: datetime | None
    """When the controller last observed a change of this job in the cluster."""


class ConditionView(View):
    """A condition as in Kubernetes."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    last_transition_time: datetime
    observed_generation: int


class ResourceStatusView(View):
    """An object without its spec and native status. It is cheap to poll."""

    uid: UUID
    namespace: str
    name: str
    kind: str
    generation: int
    """Increases with every edit of the spec, not with edits of labels and annotations."""
    deleted_at: datetime | None
    """When its deletion was requested, else null. The record of a deleted object stays readable."""
    status: CommonStatusView
    conditions: list[ConditionView]


class JobStatusView(ResourceStatusView):
    """A job without its spec and native status. It is cheap to poll."""

    kind: JobKindName
    status: StatusView


class ResourceView(ResourceStatusView):
    """The fields that objects of every kind have."""

    api_version: str
    labels: dict[str, str]
    annotations: dict[str, str]
    created_at: datetime
    created_by: str
    created_by_id: str | None
    spec: dict[str, Any]
    """The spec of the manifest with the field names of its own system, and with defaults filled in."""
    native_status: dict[str, Any]
    """The status in the format of the kind's own system. That of a GenericJob lists at most 1000 replicas: of a larger
    job the first ones of each task, and `replicasOmitted` has the number of the others, which …/replicas returns."""


class TaskScalingView(View):
    """A task that can be scaled while the job is live."""

    replicas: Int32
    """Desired number of replicas."""
    min: Int32
    max: Int32


class JobView(ResourceView):
    """A job of any kind."""

    kind: JobKindName
    retry_of: UUID | None
    """The uid of the job that this job retries, else null."""
    imported_at: datetime | None
    """When the job was imported from an export, for reading; null for a job that ran here."""
    scaling: dict[str, TaskScalingView]
    """The tasks that can be scaled, by name; empty if none can. Their sum may have bounds, too."""
    purge_at: datetime | None
    """When the record of a job that has ended is deleted, at the earliest: not before its objects are gone. Null while
    the job lives, if it is pinned by the annotation `jobgate.dev/keep`, or if its namespace keeps records for ever."""
    status: StatusView


class JobPage(View):
    """A page of jobs, newest first."""

    items: list[JobView]
    next_page_token: NextPageToken
    view: Literal["full"]


class PostedManifestView(View):
    """The manifest of an object as it was posted."""

    manifest: dict[str, Any] | None
    """The document of the submission, or of the last PUT that changed the manifest, with later merge patches applied:
    its fields, their order and their values, without defaults. Null if it is not known: an earlier version of jobgate
    stored or edited the object."""


class ResourceHistoryView(View):
    """One entry of the history of an object."""

    seq: int
    at: datetime
    phase: str
    reason: str
    message: str
    actor: str
    actor_id: str | None
    task: str | None
    rank: Int32 | None
    attempt: Int32 | None


class HistoryView(ResourceHistoryView):
    """One entry of the history of a job. It concerns one replica if `task` and `rank` are set."""

    phase: JobPhase


class HistoryPage(View):
    """A page of the history of a job, oldest first."""

    items: list[HistoryView]
    next_page_token: NextPageToken


class ScaleRecordView(View):
    """A change of the desired number of replicas of a task, and its outcome."""

    seq: int
    task: str
    from_replicas: Int32
    to_replicas: Int32
    actor: str
    actor_id: str | None
    reason: str
    requested_at: datetime
    settled_at: datetime | None
    """When the outcome became known; null until then."""
    outcome: ScaleOutcome | None
    """Reached, Refused by the cluster, Replaced by a newer request, or JobEnded; null until it is known."""
    message: str
    """Why the size was not reached; empty otherwise."""


class ScaleRecordPage(View):
    """A page of scale records, oldest first."""

    items: list[ScaleRecordView]
    next_page_token: NextPageToken


class EventView(View):
    """An event: a pending reason or a Kubernetes event of a job, or an action of the controller for other kinds."""

    source: EventOrigin
    task: str | None
    rank: Int32 | None
    attempt: Int32 | None
    type: str
    reason: str
    message: str
    count: Int32
    first_seen_at: datetime | None
    last_seen_at: datetime | None


class EventPage(View):
    """A page of events."""

    items: list[EventView]
    next_page_token: NextPageToken


class ManifestList(View):
    """Kubernetes objects in the order of their creation."""

    items: list[dict[str, Any]]
    next_page_token: NextPageToken


class ResourceWatchEventView(View):
    """The data of a server-sent event."""

    type: ChangeType
    at: datetime
    object: ResourceStatusView


class WatchEventView(ResourceWatchEventView):
    """The data of a server-sent event `job`."""

    type: JobChangeType
    object: JobStatusView

"""What goes over the wire: the shapes of answers, and the source of the OpenAPI document's schemas.

Every field is always present, null where there is nothing, so that clients need not tell absent from null.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from app.domain.vocabulary import Evidence, JobPhase, Outcome, ReplicaPhase, ScaleOutcome


class View(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, use_attribute_docstrings=True, extra="forbid"
    )


class AggregateView(View):
    """Replicas by phase; the sum is the desired number of replicas."""

    creating: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    deleted: int = 0


class PendingReasonView(View):
    """Why replicas do not run yet."""

    code: str
    message: str
    since: datetime | None
    replicas: list[str]
    """Names of the replicas concerned, the first 20."""
    count: int


class CommonStatusView(View):
    """The part of a status that every kind has."""

    phase: str
    reason: str
    message: str
    observed_generation: int
    """The generation that this status is about: wait until it reaches the object's own after an edit."""
    started_at: datetime | None
    finished_at: datetime | None
    observed_at: datetime | None


class StatusView(CommonStatusView):
    """The uniform status of a job of any kind."""

    phase: JobPhase
    aggregate: AggregateView
    pending_reasons: list[PendingReasonView]
    observed_at: datetime | None
    """When the cluster last showed a change of this job."""


class ConditionView(View):
    type: str
    status: str
    """True, False or Unknown."""
    reason: str
    message: str
    last_transition_time: datetime
    observed_generation: int


class ResourceStatusView(View):
    """What changes of an object, and is cheap to poll: all but its spec and native status."""

    uid: UUID
    namespace: str
    name: str
    kind: str
    generation: int
    """Rises with every edit of the spec, not with those of labels and annotations."""
    deleted_at: datetime | None
    """When its deletion was asked for. The record stays readable."""
    status: CommonStatusView
    conditions: list[ConditionView]


class JobStatusView(ResourceStatusView):
    """A job without its spec and native status: what changes, and is cheap to poll."""

    status: StatusView


class ResourceView(ResourceStatusView):
    """What every object has, of whatever kind."""

    api_version: str
    labels: dict[str, str]
    annotations: dict[str, str]
    created_at: datetime
    created_by: str
    spec: dict[str, Any]
    """The manifest's spec in the names of its own system, defaults filled in."""
    native_status: dict[str, Any]
    """The status as the kind's own system shows it."""


class TaskScalingView(View):
    """A task whose size may change while the job lives."""

    replicas: int
    """How many it shall have."""
    min: int
    max: int


class JobView(ResourceView):
    retry_of: UUID | None
    """The job that this one repeats."""
    scaling: dict[str, TaskScalingView]
    """The tasks that can be scaled, by name; their sum may be bounded too. Empty where nothing can."""
    status: StatusView


class JobPage(View):
    items: list[JobView]
    next_page_token: str | None
    """Null on the last page."""


class ContainerView(View):
    name: str
    init: bool
    state: str
    """waiting, running or terminated."""
    ready: bool
    image: str | None
    restart_count: int
    exit_code: int | None
    signal: int | None
    reason: str | None
    message: str | None
    started_at: datetime | None
    finished_at: datetime | None


class AttemptView(View):
    """One pod's life under a rank."""

    number: int
    pod_uid: str | None
    phase: ReplicaPhase
    outcome: Outcome | None
    """How the attempt ended; null while it runs."""
    evidence: Evidence
    """Whether the logs and events of the end of this attempt are stored."""
    evidence_reason: str | None
    node: str | None
    pod_ip: str | None = Field(alias="podIP")
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    exit_code: int | None
    reason: str | None
    message: str | None
    containers: list[ContainerView]


class ReplicaView(View):
    name: str
    """The pod's name."""
    task: str
    rank: int
    phase: ReplicaPhase
    attempt: int
    restart_count: int
    disruptions: int
    """Replacements after the cluster took the pod away; not charged to the restart limit."""
    leaving: bool
    """Whether the rank is beyond the task's present size; it is in no aggregate."""
    retry_at: datetime | None
    node: str | None
    pod_ip: str | None = Field(alias="podIP")
    started_at: datetime | None
    finished_at: datetime | None
    exit_code: int | None
    reason: str | None
    message: str | None
    containers: list[ContainerView]
    attempts: list[AttemptView]
    """All attempts, the present one last."""


class ReplicaPage(View):
    items: list[ReplicaView]
    next_page_token: str | None


class HistoryView(View):
    """One line of an object's history, or of one replica's where task and rank are set."""

    seq: int
    at: datetime
    phase: str
    reason: str
    message: str
    actor: str
    task: str | None
    rank: int | None
    attempt: int | None


class HistoryPage(View):
    items: list[HistoryView]
    next_page_token: str | None


class ScaleRecordView(View):
    """A change of how many replicas a task shall have."""

    seq: int
    task: str
    from_replicas: int
    to_replicas: int
    actor: str
    reason: str
    requested_at: datetime
    settled_at: datetime | None
    """When its outcome was known; null until then."""
    outcome: ScaleOutcome | None
    """Reached, Refused by the cluster, Replaced by a newer request, or JobEnded; null while it is not known."""
    message: str
    """Why, where it was not reached."""


class ScaleRecordPage(View):
    items: list[ScaleRecordView]
    next_page_token: str | None


class EventView(View):
    """What happened to an object.

    Of a job it is what the cluster said about a pod: its last events when an attempt ended, or why it is pending now.
    Of other kinds it is what their controller did and what stood in the way.
    """

    source: str
    """evidence or pending; controller for a kind without pods."""
    task: str | None
    rank: int | None
    attempt: int | None
    type: str
    reason: str
    message: str
    count: int
    first_seen_at: datetime | None
    last_seen_at: datetime | None


class EventPage(View):
    items: list[EventView]
    next_page_token: str | None


class ManifestList(View):
    """Kubernetes objects in the order of their creation."""

    items: list[dict[str, Any]]
    next_page_token: str | None


class TaskPlanView(View):
    name: str
    replicas: int
    restart_policy: str
    restart_limit: int | None


class PlanView(View):
    tasks: list[TaskPlanView]
    pods: list[str]
    services: list[str]
    active_deadline_seconds: int | None
    pending_deadline_seconds: int | None
    ttl_seconds_after_finished: int | None


class ResourceDryRunView(View):
    """What a submission would store. Nothing was stored."""

    dry_run: bool
    manifest: dict[str, Any]


class DryRunView(ResourceDryRunView):
    """What a submission would store and make. Nothing was stored.

    `manifests` are the objects of the job itself and of the first replicas of each task, at most about a hundred and
    4 MiB. `manifestsOmitted` objects are not shown.
    """

    plan: PlanView
    manifests: list[dict[str, Any]]
    manifests_omitted: int


class DryRunList(View):
    """What a submission of several jobs would store and make, in their order."""

    items: list[DryRunView]


class KindView(View):
    kind: str
    api_versions: list[str]
    """The canonical one first."""
    resource: str
    """The collection that its manifests are posted to, as `jobs`."""
    mutable_fields: list[str]
    """JSON pointers below the manifest that PUT and PATCH may change."""
    supports_pause: bool
    json_schema: dict[str, Any]


class KindList(View):
    items: list[KindView]


class FieldErrorView(View):
    pointer: str
    """JSON pointer into the body; /query/…, /header/… or /path/… for what is not in the body."""
    code: str
    detail: str
    accepted: str | None = None


class ProblemView(View):
    """RFC 9457 problem details."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    """Stable: program against this."""
    errors: list[FieldErrorView] = Field(default=[])
    """All that is wrong, at most 20 entries."""


class ResourceBatchItemView(View):
    """An object that was stored, or why it was not."""

    status: int
    """What a request for this object alone would have been answered with."""
    object: ResourceView | None
    problem: ProblemView | None


class BatchItemView(ResourceBatchItemView):
    """A job that was stored, or why it was not."""

    object: JobView | None


class BatchView(View):
    items: list[BatchItemView]


class ResourceWatchEventView(View):
    """The data of a server-sent event."""

    type: str
    """created, edited, cancelled, removed, deleted or status."""
    at: datetime
    object: ResourceStatusView
    """The object as it is when the event is sent, which may be newer than the event."""


class WatchEventView(ResourceWatchEventView):
    """The data of an SSE event `job`."""

    object: JobStatusView

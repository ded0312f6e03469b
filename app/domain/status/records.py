"""The stored status of a job, of its replicas and of their attempts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.vocabulary import (
    ConditionType,
    Evidence,
    JobPhase,
    Outcome,
    Reason,
    ReplicaPhase,
    ScaleOutcome,
    StopReason,
)

ACTOR_CONTROLLER = "jobgate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The life of one pod of a replica, numbered from 1. At most one pod uid is ever recorded for it.

    `outcome` is None while it runs. `stopping` is set, and stored, before jobgate deletes its pod.
    """

    number: int
    pod_uid: str | None = None
    phase: ReplicaPhase = ReplicaPhase.CREATING
    outcome: Outcome | None = None
    stopping: StopReason | None = None
    evidence: Evidence = Evidence.NONE
    evidence_reason: str | None = None
    node: str | None = None
    pod_ip: str | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    containers: tuple[ObservedContainer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A replica and its current attempt. `restarts` are charged to the budget, `disruptions` are not.

    `retry_at` is when the current attempt's pod may be created. `settled` means that no further attempt follows
    unless the job is resumed. `leaving` ranks are beyond the task's size: they are in no aggregate and no rule, and
    stay here, with what happened to them, when their pods are gone.
    """

    key: Rank
    attempt: Attempt
    restarts: int = 0
    disruptions: int = 0
    retry_at: datetime | None = None
    settled: bool = False
    leaving: bool = False

    @property
    def phase(self) -> ReplicaPhase:
        return self.attempt.phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    type: ConditionType
    status: str  # True, False or Unknown
    reason: str
    message: str
    last_transition_at: datetime
    observed_generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPendingReason:
    """A pending reason with the replicas it holds for; `replicas` is cut at 20, `count` is not."""

    code: str
    message: str
    since: datetime | None
    replicas: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRecord:
    """A request for another size of a task; `outcome` is None until it is known."""

    seq: int
    task: str
    from_replicas: int
    to_replicas: int
    actor: str
    reason: str
    requested_at: datetime
    settled_at: datetime | None = None
    outcome: ScaleOutcome | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A change of the phase of a job, or of the reason of the phase."""

    at: datetime
    phase: JobPhase
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFailure:
    """How one attempt of a replica failed. `message` is the last line of what the cluster reported."""

    key: Rank
    attempt: int
    outcome: Outcome
    exit_code: int | None = None
    reason: str | None = None
    message: str = ""
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSummary:
    """The failures that ended a job: `first` lists at most five, `failed` and `disrupted` count all by outcome.

    The reconcile that ends the job computes it, and it never changes. A replica that fails later, while the pods of the
    job are being stopped, did not cause the end.
    """

    first: tuple[ReplicaFailure, ...] = ()
    failed: int = 0
    disrupted: int = 0


NO_FAILURES: Final = FailureSummary()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """`resumes` counts how often the job came back from pause; a dialect renders resumed pods differently.

    `restarts` counts how often the job was restarted because replicas failed, `reschedules` how often its replicas
    changed without anybody's fault: taken away by the cluster, added or removed. `transitions` are the newest ten and
    the last one into each phase, the oldest first.

    `crashed` are the last failures of at most twenty replicas that are started again and do not run yet. `restored_at`
    is when every replica had a pod again in the latest restart or change of size, None until then.
    `ended_by` lists the failures that ended the job; it is empty unless the end followed from its replicas.

    `anchors` are the uids of the job's anchor: more than one where somebody deleted it and it was made again.

    `active_since` is when it first ran after its submission or its last pause: the active deadline counts from there.
    `gone_at` is when the last object of a removed job was found gone. `quiet` says that an ended job needs nothing
    more of the controller unless somebody asks for its removal.
    """

    phase: JobPhase = JobPhase.QUEUED
    reason: str = Reason.SUBMITTED
    message: str = ""
    aggregate: Mapping[ReplicaPhase, int] = field(default_factory=dict)
    pending_reasons: tuple[JobPendingReason, ...] = ()
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0
    resumes: int = 0
    restarts: int = 0
    reschedules: int = 0
    transitions: tuple[Transition, ...] = ()
    crashed: tuple[ReplicaFailure, ...] = ()
    restored_at: datetime | None = None
    ended_by: FailureSummary = NO_FAILURES
    initialized_at: datetime | None = None
    started_at: datetime | None = None
    active_since: datetime | None = None
    finished_at: datetime | None = None
    observed_at: datetime | None = None
    pending_since: datetime | None = None
    gone_at: datetime | None = None
    quiet: bool = False
    anchors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The record of a job in PostgreSQL before a reconcile."""

    status: JobStatus
    replicas: Mapping[Rank, Replica]
    created_at: datetime
    scaling: Sequence[ScaleRecord] = ()  # those whose outcome is not known yet, the oldest first
    pod_names: Mapping[Rank, str] = field(default_factory=dict)

    @property
    def had_pods(self) -> bool:
        """Whether any attempt of this job ever had a pod."""
        seen = (item.attempt.pod_uid or item.restarts or item.disruptions for item in self.replicas.values())
        return self.status.initialized_at is not None or any(seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What clients have asked of a job beside its spec. `remove` deletes all objects: delete, TTL, or a successor."""

    generation: int
    cancel: bool = False
    cancel_actor: str | None = None
    cancel_reason: str | None = None
    remove: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One line of the history of a job or of another object; of a replica's when `key` is set."""

    at: datetime
    phase: str
    reason: str
    message: str
    actor: str = ACTOR_CONTROLLER
    key: Rank | None = None
    attempt: int | None = None

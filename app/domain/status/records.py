"""The stored status of a job, of its replicas and of their attempts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from app.domain.access.actors import CONTROLLER, Actor
from app.domain.plan import JobWarning, Rank
from app.domain.queueing.admission import Queueing
from app.domain.status.observed import ObservedContainer
from app.domain.status.pods.containers import choose_container
from app.domain.usage.holds import UNUSED, Hold, JobUse
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

MOST_WARNINGS: Final = 20  # of the cluster about one object: a webhook can give each pod another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The life of one pod of a replica, numbered from 1. At most one pod uid is ever recorded for it.

    `outcome` is None until the attempt has ended. `stopping` is stored before jobgate deletes the pod. `last_lines` are
    the last line of the log of the container that failed, or several lines for the first failure of the job; None if no
    container failed or its log could not be read. `hold` is the time in which the pod has had a node, if it had one.
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
    last_lines: tuple[str, ...] | None = None
    hold: Hold | None = None

    @property
    def log_container(self) -> str | None:
        """The container whose log is shown unless a request names another; None if no container is known."""
        shown = choose_container(self.containers, None)
        return shown.name if shown is not None else None

    @property
    def restarts_in_place(self) -> int:
        """How often the kubelet has restarted containers of the pod."""
        return sum(container.restart_count for container in self.containers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A replica and its current attempt. Restarts count against the restart limit, disruptions do not.

    The pod of the current attempt is not created before `retry_at`, which is None once the attempt has a pod or has
    ended. `settled` means that no further attempt follows unless the job is resumed. A replica that is `leaving` has a
    rank beyond the size of its task. The aggregate and the rules ignore it, and its record remains after its pod is
    gone. `unreported` says that the current attempt failed and that the history has no row about it yet.
    """

    key: Rank
    attempt: Attempt
    restarts: int = 0
    disruptions: int = 0
    retry_at: datetime | None = None
    settled: bool = False
    leaving: bool = False
    unreported: bool = False

    @property
    def phase(self) -> ReplicaPhase:
        return self.attempt.phase

    @property
    def lacks_pod(self) -> bool:
        """Whether the replica is between two attempts."""
        return self.attempt.pod_uid is None or self.attempt.outcome is not None


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
    """A pending reason with its replicas: the first 20 of them, and the number of all.

    `started` says that these replicas have started and have this fault while they run; otherwise they wait for it.
    """

    code: str
    message: str
    since: datetime | None
    replicas: tuple[str, ...]
    count: int
    started: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRecord:
    """A request to change the number of replicas of a task. `outcome` is None until the request is decided.

    `actor` and `actor_id` are the name and the id of its `Actor`.
    """

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
    actor_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A change of the phase of a job, or of the reason of the phase."""

    at: datetime
    phase: JobPhase
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFailure:
    """How one attempt of a replica failed, at the time `at` if that is known.

    `message` is the last line of what the cluster reported. `last_lines` are the last lines of the log of the container
    that failed; None if they are not stored yet or could not be read. `container` is the container that failed, and
    `is_default` says whether its log is shown unless a client names one. `init_container` is the init container that
    failed and kept the others from starting, if one did.
    """

    key: Rank
    attempt: int
    outcome: Outcome
    exit_code: int | None = None
    reason: str | None = None
    message: str = ""
    node: str | None = None
    signal: int | None = None
    container: str | None = None
    is_default: bool = True
    init_container: str | None = None
    last_lines: tuple[str, ...] | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSummary:
    """The failures that ended a job: `first` has at most five of them; `failed` and `disrupted` are the counts of all.

    The reconcile that ends the job computes it, and it never changes. A replica that fails later, while the pods of the
    job are being stopped, did not cause the end.
    """

    first: tuple[ReplicaFailure, ...] = ()
    failed: int = 0
    disrupted: int = 0


NO_FAILURES: Final = FailureSummary()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialStart:
    """How far a job is from running whole for the first time, or for the first time after a pause.

    `since` is when some replicas had nodes and too many others had none; None if that is not so. `withdrawals` is how
    often the job has freed its nodes since it last ran whole. While it waits to start again, `again_at` is when, and
    `obstacle` is why replicas had no nodes, as the end of a sentence.
    """

    since: datetime | None = None
    withdrawals: int = 0
    again_at: datetime | None = None
    obstacle: str = ""


NOT_PARTIAL: Final = PartialStart()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """The status of a job as the controller stores it.

    `resumes` is the number of resumes after a pause; a kind can render the pods of a resumed job differently.
    `restarts` is the number of restarts after failures, `reschedules` the number of disruptions and resizes.
    `restarts_in_place` is how often the kubelet has restarted containers of the current attempts.
    `transitions` are the newest ten and the last one into each phase, the oldest first.

    `crashed` are the last failures of at most twenty replicas that are being restarted and do not run yet.
    `restored_at` is when every replica had a pod again in the latest restart or resize; None until then. `ended_by` has
    the failures that ended the job; it is empty if the job ended for another reason.
    `first_failure` is the first failed attempt of the job. It stays through restarts, resizes and pauses, and after the
    end. `failure_rows` is the number of history rows about failed attempts, which is bounded.

    `still_running` is the number of replicas that run although the job has ended, because its clean-up policy keeps
    them. `anchors` are the uids that the anchor of the job has had: several if another client deleted it. `warnings`
    are those about its manifest, and the first 20 of the cluster about its objects.

    `active_since` is when the job first ran after its submission or last pause; the active deadline is counted from it.
    `gone_at` is when the last object of a removed job was found gone. `quiet` says that an ended job needs no further
    reconcile unless its removal is requested. `queueing` is the queue of the job and its admission, if it has a queue.
    `usage` is what its usage needs besides the holds of its attempts.
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
    restarts_in_place: int = 0
    transitions: tuple[Transition, ...] = ()
    crashed: tuple[ReplicaFailure, ...] = ()
    restored_at: datetime | None = None
    ended_by: FailureSummary = NO_FAILURES
    first_failure: ReplicaFailure | None = None
    failure_rows: int = 0
    initialized_at: datetime | None = None
    started_at: datetime | None = None
    active_since: datetime | None = None
    finished_at: datetime | None = None
    observed_at: datetime | None = None
    pending_since: datetime | None = None
    gone_at: datetime | None = None
    quiet: bool = False
    still_running: int = 0
    anchors: tuple[str, ...] = ()
    warnings: tuple[JobWarning, ...] = ()
    partial_start: PartialStart = NOT_PARTIAL
    queueing: Queueing | None = None
    usage: JobUse = UNUSED

    @property
    def is_restored(self) -> bool:
        """Whether every replica got a pod again in the restart or resize that is in progress."""
        since = self.transitions[-1].at if self.transitions else None
        return since is not None and self.restored_at is not None and self.restored_at >= since


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The record of a job in PostgreSQL before a reconcile."""

    status: JobStatus
    replicas: Mapping[Rank, Replica]
    created_at: datetime
    scaling: Sequence[ScaleRecord] = ()  # without outcome so far, the oldest first
    pod_names: Mapping[Rank, str] = field(default_factory=dict)

    @property
    def had_pods(self) -> bool:
        """Whether any attempt of this job ever had a pod."""
        seen = (item.attempt.pod_uid or item.restarts or item.disruptions for item in self.replicas.values())
        return self.status.initialized_at is not None or any(seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """The intent of clients besides the spec.

    `remove` deletes all objects: after a delete, a TTL, or for a successor.
    """

    generation: int
    cancel: bool = False
    cancel_actor: Actor | None = None
    cancel_reason: str | None = None
    remove: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """An entry of the history of a job or of another object. An entry about a replica has its rank as `key`."""

    at: datetime
    phase: str
    reason: str
    message: str
    actor: Actor = CONTROLLER
    key: Rank | None = None
    attempt: int | None = None

"""The models of replicas: their attempts and containers."""

from datetime import datetime

from pydantic import Field

from app.api.views.base import Int32, NextPageToken, View
from app.api.views.closed_sets import ContainerState
from app.domain.vocabulary import Evidence, Outcome, ReplicaPhase


class ContainerView(View):
    """A container of a pod."""

    name: str
    init: bool
    default: bool
    """Whether its log is shown unless a client names a container: the one of the annotation
    `kubectl.kubernetes.io/default-container`, or else the first of the pod's spec."""
    state: ContainerState
    ready: bool
    image: str | None
    restart_count: Int32
    exit_code: Int32 | None
    signal: Int32 | None
    reason: str | None
    message: str | None
    started_at: datetime | None
    finished_at: datetime | None


class AttemptView(View):
    """The life of one pod of a replica."""

    number: Int32
    pod_uid: str | None
    phase: ReplicaPhase
    outcome: Outcome | None
    """How the attempt ended; null while it has not ended."""
    evidence: Evidence
    """Whether the last log lines and events of the attempt are stored."""
    evidence_reason: str | None
    node: str | None
    pod_ip: str | None = Field(alias="podIP")
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    exit_code: Int32 | None
    reason: str | None
    message: str | None
    containers: list[ContainerView]
    log_container: str | None
    """The container whose log is returned by default; null if no container is known."""


class ReplicaView(View):
    """One member of a task. The fields about a pod concern the current attempt."""

    name: str
    """Name of the pod."""
    task: str
    rank: Int32
    phase: ReplicaPhase
    attempt: Int32
    restart_count: Int32
    restarts_in_place: Int32
    """How often the kubelet has restarted containers of the current pod. The restart limit does not count these."""
    disruptions: Int32
    """Number of replacements after the cluster removed a pod. They do not count against the restart limit."""
    leaving: bool
    """Whether a scale down removes this replica. The aggregate does not count it."""
    retry_at: datetime | None
    node: str | None
    pod_ip: str | None = Field(alias="podIP")
    started_at: datetime | None
    finished_at: datetime | None
    exit_code: Int32 | None
    reason: str | None
    message: str | None
    containers: list[ContainerView]
    attempts: list[AttemptView]
    """All attempts, the current one last."""
    log_attempt: Int32 | None
    """The attempt whose log is returned by default: the newest one that has a log. Null if none has."""


class ReplicaPage(View):
    """A page of replicas, ordered by task and rank."""

    items: list[ReplicaView]
    next_page_token: NextPageToken

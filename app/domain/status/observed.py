"""The observed objects of one job at one moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from app.domain.plan import JobWarning, Rank
from app.domain.queueing.workload_status import ObservedWorkload
from app.domain.vocabulary import PendingCode, ReplicaPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedContainer:
    """A container as the kubelet reports it. `state` is waiting, running or terminated.

    `exit_code` and `signal` are those of the current termination, or of the last one while it is being restarted
    in place. `default` marks the container whose log is shown unless a client names one, and `culprit` the one that
    failed first, whose failure is that of the pod.
    """

    name: str
    state: str
    init: bool = False
    default: bool = False
    culprit: bool = False
    ready: bool = False
    image: str | None = None
    restart_count: int = 0
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def has_run(self) -> bool:
        """Whether the container has ever run, so that it has a log."""
        return self.state == "running" or self.started_at is not None or self.restart_count > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRestart:
    """A restart in place: the kubelet started a container of a pod again, for the `number`-th time. `cause` is how the
    run before ended; empty if that is not known.
    """

    container: str
    number: int
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingReason:
    """Why a replica does not run, or which fault a container of a running one has: a code of jobgate and the message of
    the cluster.
    """

    code: PendingCode
    message: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPod:
    """One pod of a job. `key` and `attempt` come from its labels.

    `phase` is never Deleted. `ended` says that no container of the pod can run any more, or that its main container has
    ended and others are `lingering`, which only a deletion ends. `exit_code` is that of the container that failed
    first. `disruption` is the reason of the cluster if it disrupted the pod. `deletion_deadline` is the
    deletionTimestamp: the end of the grace period, which began at `deleted_at`. `followed` says that the pod has the
    labels by which the watch of the mirror selects pods; any other pod is read again and again. `gated` says that it
    has scheduling gates or the finalizer of Kueue, and `captured` that Kueue has made a Workload of its own for it.
    `wanted_nodes` are the labels of the nodes that it waits for, in a job with a topology of Kueue.
    """

    name: str
    uid: str
    key: Rank
    attempt: int
    phase: ReplicaPhase
    ended: bool
    lingering: bool = False
    version: int = 0
    node: str | None = None
    pod_ip: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    disruption: str | None = None
    deletion_deadline: datetime | None = None
    deleted_at: datetime | None = None
    held: bool = True  # has the evidence finalizer of jobgate
    kept_by: tuple[str, ...] = ()  # the finalizers of other clients
    created_at: datetime | None = None
    pending: PendingReason | None = None
    containers: tuple[ObservedContainer, ...] = ()
    followed: bool = True
    group: str = ""  # the name of its PodGroup
    restarts_in_place: tuple[ContainerRestart, ...] = ()
    gated: bool = False
    captured: bool = False
    wanted_nodes: Mapping[str, str] = field(default_factory=dict)

    @property
    def deleting(self) -> bool:
        return self.deletion_deadline is not None

    @property
    def failed_container(self) -> str | None:
        """The name of the container that failed first."""
        return next((container.name for container in self.containers if container.culprit), None)


class RefusalVerdict(StrEnum):
    """What a refusal by the cluster means for the job; docs/status.md has the table."""

    RETRY = "retry"  # pending with a code, retried until the pending deadline
    FAIL = "fail"  # the job fails with the message of the cluster
    WAIT = "wait"  # an object of jobgate that is being deleted has the name


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRefusal:
    """The cluster's answer to a create that failed. `code` is a PendingCode for RETRY and WAIT, else a Reason."""

    verdict: RefusalVerdict
    code: str
    message: str
    since: datetime
    pod: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredObject:
    """A new object that a webhook or policy of the cluster has changed, so that jobgate must not use it.

    Its uid is the one in the answer to the create. `removed` says that it is deleted and released.
    """

    api_version: str
    kind: str
    name: str
    uid: str
    finalizers: tuple[str, ...]
    message: str
    removed: bool = False


class KueueState(StrEnum):
    """What the controller knows of Kueue."""

    ABSENT = "absent"  # the cluster does not serve its API, or a setting turns the integration off
    DENIED = "denied"  # jobgate has no right to read its objects
    UNKNOWN = "unknown"  # its objects are not listed yet
    LISTED = "listed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedQueue:
    """What the controller knows of Kueue and of the Workloads of the job, by their numbers.

    `required` says that no job with a queue runs without Kueue. `local_queues` has the requested LocalQueue and the
    default one, if the namespace has them. `error` is the last one while the state is not LISTED.
    """

    state: KueueState = KueueState.ABSENT
    required: bool = False
    local_queues: frozenset[str] = frozenset()
    workloads: Mapping[int, ObservedWorkload] = field(default_factory=dict)
    error: str = ""

    @property
    def workload(self) -> ObservedWorkload | None:
        """The first Workload of the job."""
        return self.workloads.get(0)


NO_QUEUE: Final = ObservedQueue()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedJob:
    """Everything that the controller knows about the objects of a job in the cluster.

    `gone` has the uids of pods that a quorum GET did not find. `refusals` are the refused creates by replica, and
    `job_refusal` is that of an object that all replicas need. `lost_nodes` are nodes that are NotReady or missing.
    `pending_events` are pending reasons from Kubernetes Events, by pod uid. `objects_gone` says that the deletion of
    anchor and Services was confirmed, and `anchor_marked` that the anchor has the terminal phase. `hosts_generation` is
    the generation of the list of hosts in the cluster, or None if it is unknown. `anchors` are uids of the anchor that
    are not on record yet. `group_deleting` says that another client has deleted or edited the PodGroup.
    `warnings` are those of the cluster about objects that it created. `altered` are objects to be deleted, because the
    cluster changed them when it created them. `queue` is what is known of Kueue.
    """

    pods: Sequence[ObservedPod] = ()
    gone: frozenset[str] = frozenset()
    refusals: Mapping[Rank, ClusterRefusal] = field(default_factory=dict)
    job_refusal: ClusterRefusal | None = None
    lost_nodes: frozenset[str] = frozenset()
    pending_events: Mapping[str, PendingReason] = field(default_factory=dict)
    objects_gone: bool = False
    anchor_marked: bool = False
    hosts_generation: int | None = None
    anchors: tuple[str, ...] = ()
    group_deleting: bool = False
    warnings: tuple[JobWarning, ...] = ()
    altered: tuple[AlteredObject, ...] = ()
    queue: ObservedQueue = NO_QUEUE

"""The actions of a decision on the cluster. Each is safe to repeat; they run in the order of the decision."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from app.domain.plan import Rank
from app.domain.status.observed import AlteredObject


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsureObjects:
    """Create, where missing, the anchor, the job's Services, its PodGroup and its list of hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteHosts:
    """Update the ConfigMap with the list of hosts to the generation of the plan. `EnsureObjects` creates it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePod:
    """Create the pod of this rank and attempt, and its own Service before it.

    With `in_gang`, the pod is placed together with the gang of its job.
    """

    key: Rank
    attempt: int
    in_gang: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckGroup:
    """Read, now and then, whether the PodGroup that pods without a node wait in is as the job needs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod:
    """Delete by name with a uid precondition; `force` sets the grace period to 0 for a pod whose node is lost."""

    name: str
    uid: str
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePod:
    """Remove the evidence finalizer of a pod, so that the cluster may delete the pod."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureEvidence:
    """Store the log tails and last Events of an ended attempt, then record in its evidence field that this is done.

    The last `lines` of the log of `failed_container` become part of the attempt; None if no container failed. The pod
    was created at `created_at`, if that is known.
    """

    key: Rank
    attempt: int
    pod_name: str
    pod_uid: str
    containers: tuple[str, ...]
    created_at: datetime | None = None
    node: str | None = None
    failed_container: str | None = None
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmGone:
    """Check with a quorum GET that a pod that left the mirror no longer exists."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEvents:
    """Read the Events of a pod that has been pending for long, to find its pending reason."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkAnchor:
    """Annotate the anchor with the terminal phase, for a database that is restored from an older backup."""

    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveObjects:
    """Delete the anchor and all other objects that it controls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardObject:
    """Delete a new object that the cluster has changed, and remove jobgate's finalizer from it."""

    altered: AlteredObject


class QueueAction:
    """An action on a Workload of a job, or on what Kueue adds to its pods."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UngatePod(QueueAction):
    """Remove Kueue's scheduling gates and finalizer from a pod whose quota the Workload of its job holds."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadAction(QueueAction):
    """A write to the Workload of the job with this number: 0 is its first one."""

    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRequest(WorkloadAction):
    """A write to the spec of a Workload of Kueue: the resources, the queue and the priority that a job requests.

    The Workload is for the replicas of `ranks`: of each task those from the first rank up to the second one, which is
    not among them. The first Workload has no ranks, and is for all replicas.
    """

    ranks: tuple[tuple[str, int, int], ...] = ()

    @property
    def key(self) -> Rank | None:
        """The first replica of a further Workload. A refusal of the Workload is one of this replica."""
        return next((Rank(task, first) for task, first, _ in self.ranks), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsureWorkload(WorkloadRequest):
    """Create a Workload of Kueue for the job in the LocalQueue of this name, if it does not exist."""

    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPriority(WorkloadRequest):
    """Give the waiting Workload the priority that an edit of the job requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelWorkload(WorkloadAction):
    """Put back the labels by which jobgate follows the Workload: another client has removed them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveBackQuota(WorkloadAction):
    """Remove the admission from the Workload, because none of its pods is left after this eviction.

    `reclaimed` counts the pods of each pod set that need no quota when it is admitted again.
    """

    reason: str
    message: str
    reclaimed: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivateWorkload(WorkloadAction):
    """Let Kueue queue a Workload again that was deactivated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPodsReady(WorkloadAction):
    """Report to Kueue whether all pods of the Workload have started, or one of them must start again.

    Kueue evicts a Workload that is not ready for long.
    """

    ready: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimPods(WorkloadAction):
    """Report to Kueue how many pods of each pod set, `reclaimed`, need no quota any more."""

    reclaimed: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishWorkload(WorkloadAction):
    """Report the end of the job to Kueue, and release the Workload. Its quota is free after that."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveWorkload(WorkloadAction):
    """Delete and release the Workload. Its quota is free after that."""


ObjectAction: TypeAlias = (
    EnsureObjects
    | WriteHosts
    | CreatePod
    | CheckGroup
    | DeletePod
    | ReleasePod
    | CaptureEvidence
    | ConfirmGone
    | ReadEvents
    | MarkAnchor
    | RemoveObjects
    | DiscardObject
)
"""An action on the pods of a job, or on the objects that they need."""

Action: TypeAlias = ObjectAction | QueueAction

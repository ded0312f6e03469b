"""What `reconcile` may ask of the cluster. Each is safe to repeat; all are ordered as listed in a decision."""

from dataclasses import dataclass
from typing import TypeAlias

from app.domain.plan import Rank


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsureObjects:
    """Create, where missing, the anchor, the job's Services, its PodGroup and its list of hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteHosts:
    """Bring the ConfigMap with the list of hosts to the plan's generation. `EnsureObjects` makes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePod:
    """Create the pod of this rank and attempt, and its own Service before it."""

    key: Rank
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod:
    """Delete by name with a uid precondition; `force` sets the grace period to 0 for a pod whose node is lost."""

    name: str
    uid: str
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePod:
    """Take the evidence finalizer off."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureEvidence:
    """Store log tails and last events of an ended attempt, then say so in its evidence field."""

    key: Rank
    attempt: int
    pod_name: str
    pod_uid: str
    containers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmGone:
    """Ask with a quorum GET whether a pod that left the mirror is really gone."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEvents:
    """Read the Events of a pod that has been pending for long, to say why."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkAnchor:
    """Write the terminal phase on the anchor, for a database that has forgotten it."""

    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveObjects:
    """Delete the anchor and whatever else is left of the job, by label."""


Action: TypeAlias = (
    EnsureObjects
    | WriteHosts
    | CreatePod
    | DeletePod
    | ReleasePod
    | CaptureEvidence
    | ConfirmGone
    | ReadEvents
    | MarkAnchor
    | RemoveObjects
)

"""Values of the model cluster: its faults, the ends of its containers, and the expectations of its controller."""

from dataclasses import dataclass, field
from typing import NamedTuple

from app.domain.plan import Rank
from app.domain.status.observed import ClusterRefusal, PendingReason
from app.domain.vocabulary import Evidence


class Exit(NamedTuple):
    """The end of a container: exit code, reason of the kubelet, and termination message."""

    code: int
    reason: str | None = None
    message: str | None = None


@dataclass(slots=True, kw_only=True)
class Expectations:
    """What a controller knows beside its records and its view. It is lost when the controller dies."""

    gone: set[str] = field(default_factory=set)
    refusals: dict[Rank, ClusterRefusal] = field(default_factory=dict)
    pending_events: dict[str, PendingReason] = field(default_factory=dict)
    objects_gone: bool = False
    anchor_marked: bool = False
    hosts_generation: int | None = None


@dataclass(slots=True, kw_only=True)
class Faults:
    """The present faults of the cluster."""

    lagging: bool = False  # the watch does not update the view
    create: str = ""  # effect on the next create: "lost": its answer is lost; "late": it arrives later
    refusals: dict[Rank, ClusterRefusal] = field(default_factory=dict)
    evidence: Evidence = Evidence.CAPTURED  # NONE delays every capture

"""What may go wrong on the model cluster, how its processes end, and what its controller knows for the moment."""

from dataclasses import dataclass, field
from typing import NamedTuple

from app.domain.plan import Rank
from app.domain.status.observed import ClusterRefusal, PendingReason
from app.domain.vocabulary import Evidence


class Exit(NamedTuple):
    """How containers end: with a code, the kubelet's reason, and the message that they leave."""

    code: int
    reason: str | None = None
    message: str | None = None


@dataclass(slots=True, kw_only=True)
class Expectations:
    """What a controller knows beside its records and its view; lost when it dies."""

    gone: set[str] = field(default_factory=set)
    refusals: dict[Rank, ClusterRefusal] = field(default_factory=dict)
    pending_events: dict[str, PendingReason] = field(default_factory=dict)
    objects_gone: bool = False
    anchor_marked: bool = False
    hosts_generation: int | None = None


@dataclass(slots=True, kw_only=True)
class Faults:
    """What goes wrong until it is set right again."""

    lagging: bool = False  # the view learns nothing from the watch
    create: str = ""  # the next create: "lost" answer, or "late" to land
    refusals: dict[Rank, ClusterRefusal] = field(default_factory=dict)
    evidence: Evidence = Evidence.CAPTURED  # NONE delays every capture

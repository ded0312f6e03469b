"""The inputs and results of the dry run. The record of a run of the autoscaler stores them unchanged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from app.domain.vocabulary import JobPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAmount:
    """An amount of resources: `cpu` in thousandths, `memory` in 10^6 bytes, `gpu` in devices of any vendor."""

    cpu: int = 0
    memory: int = 0
    gpu: int = 0

    def __add__(self, other: "ResourceAmount") -> "ResourceAmount":
        return ResourceAmount(cpu=self.cpu + other.cpu, memory=self.memory + other.memory, gpu=self.gpu + other.gpu)

    def __sub__(self, other: "ResourceAmount") -> "ResourceAmount":
        return ResourceAmount(cpu=self.cpu - other.cpu, memory=self.memory - other.memory, gpu=self.gpu - other.gpu)

    def times(self, count: int) -> "ResourceAmount":
        return ResourceAmount(cpu=self.cpu * count, memory=self.memory * count, gpu=self.gpu * count)

    def covers(self, need: "ResourceAmount") -> bool:
        """Return whether the amount has every resource that is needed. Resources that are not needed may be short."""
        return (
            (not need.cpu or self.cpu >= need.cpu)
            and (not need.memory or self.memory >= need.memory)
            and (not need.gpu or self.gpu >= need.gpu)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCapacity:
    """The capacity of a node.

    `free` is allocatable minus requests, and `slots` the number of further pods. No pod can be placed on a node that is
    not `open`; `closed` has the reason. `labels` are those that the node selector of a job names.
    """

    name: str
    free: ResourceAmount
    slots: int
    closed: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        return not self.closed


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The capacity of a cluster, and the resources that its pods request.

    `total` is allocatable on the open nodes, `requested` the requests of their pods and of unbound pods. `namespaces`
    lists the namespaces that were read; empty means all.
    """

    nodes: tuple[NodeCapacity, ...] = ()
    total: ResourceAmount = ResourceAmount()
    requested: ResourceAmount = ResourceAmount()
    unbound_pods: int = 0
    namespaces: tuple[str, ...] = ()


class Verdict(StrEnum):
    """Why a job is resized, or why it is not."""

    GROWS = "Grows"
    SHRINKS = "Shrinks"
    AT_MAX = "AtMax"
    NO_NODE_FITS = "NoNodeFits"
    CPU_AT_LOAD = "CpuAtLoad"
    MEMORY_AT_LOAD = "MemoryAtLoad"
    GPU_FULL = "GpuFull"
    FIXED_SIZE = "FixedSize"
    NOT_RUNNING = "NotRunning"
    PAUSED = "Paused"
    OPTED_OUT = "OptedOut"
    FROZEN = "Frozen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Excuse:
    """Why the autoscaler does not resize a job, no matter which capacity is free."""

    verdict: Verdict
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalableJob:
    """A job that may be resized.

    `size` is the size of `task` in the manifest, `least` and `most` are its bounds, `need` is the request of a replica.
    `settling` says that the pods do not match the size yet.
    """

    uid: str
    namespace: str
    name: str
    task: str
    size: int
    least: int
    most: int
    need: ResourceAmount
    phase: JobPhase
    settling: bool = False
    selector: Mapping[str, str] = field(default_factory=dict)
    excuse: Excuse | None = None

    def fulfillment(self, size: int) -> Fraction:
        """Return (size - least) / (most - least), which may be outside 0 to 1; 1 for a job of fixed size."""
        # Exact, so that jobs of equal fulfillment compare as equal and the size of their requests decides.
        return Fraction(1) if self.least == self.most else Fraction(size - self.least, self.most - self.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job that cannot start because its pods are unschedulable."""

    uid: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingDecision:
    """The decision on one job. `applied` says that the job was edited; `refusal` is the reason if the edit failed."""

    uid: str
    namespace: str
    name: str
    task: str
    from_replicas: int
    to_replicas: int
    verdict: Verdict
    message: str
    applied: bool = False
    refusal: str = ""

    @property
    def changes(self) -> bool:
        return self.from_replicas != self.to_replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunResult:
    """The decisions of a dry run, and the inventory after they are carried out."""

    decisions: tuple[ScalingDecision, ...]
    inventory: Inventory

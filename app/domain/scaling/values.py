"""What the dry run takes and gives: amounts, nodes, jobs, decisions. Kept as they are in a run's record."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from app.domain.vocabulary import JobPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAmount:
    """`cpu` in thousandths, `memory` in 10^6 bytes, `gpu` in pieces of whatever make."""

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
        """Whether it has what is needed; being short of what is not needed does not matter."""
        return (
            (not need.cpu or self.cpu >= need.cpu)
            and (not need.memory or self.memory >= need.memory)
            and (not need.gpu or self.gpu >= need.gpu)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCapacity:
    """`free` is allocatable less requests, `slots` how many more pods it takes. A node that is not `open` takes none:
    `closed` says why. `labels` are those that some job selects nodes by.
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
    """`total` is what the open nodes can allocate, `requested` what their pods and the unbound ones ask for.

    `namespaces` are those whose pods were seen; empty is all.
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
    """Why a job is left alone, whatever room there is."""

    verdict: Verdict
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalableJob:
    """`size` is what the manifest asks for of `task`, `least` and `most` its bounds, `need` what a replica requests.

    `settling`: its pods do not follow its size yet; those that it lacks are about to be made.
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
        """How much of its elastic part a job has at this size: 0 at its least, 1 at its most; not clamped."""
        return Fraction(1) if self.least == self.most else Fraction(size - self.least, self.most - self.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job that cannot begin for want of room."""

    uid: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingDecision:
    """`applied` says that the job was edited; `refusal` why an edit that was wanted did not take place."""

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
    """What a dry run ends with; `inventory` is the one that its decisions would leave behind."""

    decisions: tuple[ScalingDecision, ...]
    inventory: Inventory

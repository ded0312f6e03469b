"""What a pass looks at and what it concludes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from app.domain.cache.reconcile.status import CacheSummary
from app.domain.cache.specs.sample_job import SampleJobSpec
from app.domain.cache.specs.sample_set import SampleSetSpec
from app.domain.cache.vocabulary import (
    Found,
    RemovalStage,
    SampleEventType,
    SampleJobPhase,
    ServerJobState,
    SetPart,
    SetPhase,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleEvent:
    type: SampleEventType
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What stands in the way, told once until it is something else."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswer:
    """What a server, by its index, says of the job that it was asked about."""

    index: int
    status: ServerJobState
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimePod:
    index: int
    name: str
    node: str
    is_running: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeStatus:
    spec_replicas: int = 0
    ready_replicas: int = 0

    @property
    def ready(self) -> str:
        """Upstream's `runtimeReady`."""
        return f"{self.ready_replicas}/{self.spec_replicas}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRecord:
    """What Postgres keeps of a set.

    `made` are the parts whose creation has been told; `digest` is that of the sync options that were posted under
    `sync_job`; `delays` counts passes that waited for a failing pod, or in one `stage`, or looked at a set that is
    Ready.
    """

    phase: SetPhase = SetPhase.NONE
    sync_job: str = ""
    digest: str = ""
    synced: bool = False
    cache: CacheSummary | None = None
    runtime: RuntimeStatus = RuntimeStatus()
    made: frozenset[SetPart] = frozenset()
    complaint: Complaint | None = None
    delays: int = 0
    stage: RemovalStage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetObserved:
    """What the cluster, and the servers as far as `needs` asked them, say. `failures` are the refusals of creations.

    `digest` is that of the sync's options now; where they cannot be made, `sync_refusal` says why. `secret` says what
    is wrong with the volume's Secret. `labelled` are the nodes that have the set's label, with its value.
    """

    found: Mapping[SetPart, Found] = field(default_factory=dict)
    volume_bound: bool = False
    secret: Complaint | None = None
    runtime: RuntimeStatus = RuntimeStatus()
    pods: tuple[RuntimePod, ...] = ()
    labelled: Mapping[str, str] = field(default_factory=dict)
    warning: Complaint | None = None
    failures: Mapping[SetPart, str] = field(default_factory=dict)
    digest: str = ""
    sync_refusal: Complaint | None = None
    sync: ServerAnswer | None = None
    cache: CacheSummary | None = None
    in_use: bool = False  # by a job that runs

    def of(self, part: SetPart) -> Found:
        return self.found.get(part, Found.ABSENT)

    @property
    def nodes(self) -> Mapping[str, str]:
        """The running pod's name by node."""
        return {pod.node: pod.name for pod in reversed(self.pods) if pod.is_running and pod.node}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetInputs:
    """`fresh_name` is drawn anew for every pass, and used at most once."""

    spec: SampleSetSpec
    deleted: bool
    record: SetRecord
    observed: SetObserved
    fresh_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    part: SetPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    part: SetPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Give the runtime this many replicas."""

    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelNode:
    """Give the node the set's label with a value; None takes it off."""

    node: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostOptions:
    """Post the job's options under its name to these servers, skipping one that has them."""

    job: str
    servers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate:
    """End what all of the set's servers do and have queued. What follows is done only when that has been."""


CacheAction: TypeAlias = Create | Delete | Scale | LabelNode | PostOptions | Terminate


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDecision:
    """Written first, then done. `wake_after` is in seconds; None: when something changes. `gone`: nothing is left."""

    record: SetRecord
    actions: tuple[CacheAction, ...] = ()
    events: tuple[SampleEvent, ...] = ()
    wake_after: float | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """What Postgres keeps of a SampleJob.

    `job` is the name of its option files; `servers`, of the set with the uid `set_uid`, have been chosen for it.
    """

    phase: SampleJobPhase = SampleJobPhase.NONE
    job: str = ""
    digest: str = ""
    servers: tuple[int, ...] = ()
    set_uid: str = ""
    message: str = ""
    complaint: Complaint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobObserved:
    """`running` are the indexes of the set's running servers; `answers` those of the servers that the record names.

    `set_uid` is empty where there is no set of the name; one that `is_leaving` takes no new jobs. `replicas` is how
    many servers it is to have, None while that is not known. `digest` is that of the job's options now; where they
    cannot be made, `refusal` says why.
    """

    set_uid: str = ""
    is_leaving: bool = False
    replicas: int | None = None
    running: tuple[int, ...] = ()
    digest: str = ""
    refusal: Complaint | None = None
    answers: tuple[ServerAnswer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInputs:
    spec: SampleJobSpec
    record: JobRecord
    observed: JobObserved
    fresh_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDecision:
    """As of a set. `refreshes_set`: its cache status is to be looked at again."""

    record: JobRecord
    actions: tuple[CacheAction, ...] = ()
    events: tuple[SampleEvent, ...] = ()
    wake_after: float | None = None
    refreshes_set: bool = False

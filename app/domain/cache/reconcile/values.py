"""The inputs and the decisions of the controller that reconciles SampleSets and SampleJobs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from app.domain.cache.reconcile.cache_status import CacheSummary, NodeCache, RuntimePod, ServerReport
from app.domain.cache.reconcile.progress import OperationProgress, ServerProgress
from app.domain.cache.vocabulary import (
    Found,
    RemovalStage,
    SampleEventType,
    SampleJobPhase,
    ServerJobState,
    SetPart,
    SetPhase,
)
from app.domain.kinds.samples.specs.sample_job import SampleJobSpec
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from app.domain.plan import JobWarning


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleEvent:
    """An event of a set or a job, as in Kubernetes."""

    type: SampleEventType
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What prevents progress. It becomes an event once, until it changes."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswer:
    """The state of a job on the server with this index."""

    index: int
    status: ServerJobState
    message: str = ""
    progress: ServerProgress | None = None


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
    """What PostgreSQL stores about a set. Its field names are stored, so they never change.

    `made` holds the objects whose creation has an event. `digest` is that of the sync options posted as `sync_job`.
    `delays` counts the reconciles that waited for a failing pod, in one removal `stage`, or in the phase Ready. `nodes`
    and `sync_progress` are what the last reconcile found; unlike `cache`, they never outlive it. `warnings` are those
    of the cluster about objects that it created.
    """

    phase: SetPhase = SetPhase.NONE
    sync_job: str = ""
    digest: str = ""
    synced: bool = False
    cache: CacheSummary | None = None
    nodes: tuple[NodeCache, ...] = ()
    sync_progress: OperationProgress | None = None
    runtime: RuntimeStatus = RuntimeStatus()
    made: frozenset[SetPart] = frozenset()
    complaint: Complaint | None = None
    delays: int = 0
    stage: RemovalStage | None = None
    warnings: tuple[JobWarning, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetObserved:
    """The observed state of a set. Fields that a need provides are unset without that need.

    `reports` has the servers whose caches were asked for, by their indexes, with None for one that did not answer.
    `failures` holds the messages of refused creations, and `warnings` those about objects that the cluster created.
    `digest` is that of the options that a sync would have now, and `sync_refusal` says why there are none. `secret`
    says what is wrong with the Secret of the volume. `labelled` maps the nodes with the set's label to its value.
    """

    found: Mapping[SetPart, Found] = field(default_factory=dict)
    volume_bound: bool = False
    is_shared: bool = False  # the volume has cache directories that are not the set's own
    secret: Complaint | None = None
    runtime: RuntimeStatus = RuntimeStatus()
    pods: tuple[RuntimePod, ...] = ()
    labelled: Mapping[str, str] = field(default_factory=dict)
    warning: Complaint | None = None
    failures: Mapping[SetPart, str] = field(default_factory=dict)
    warnings: tuple[JobWarning, ...] = ()
    digest: str = ""
    sync_refusal: Complaint | None = None
    sync: ServerAnswer | None = None
    cache: CacheSummary | None = None
    reports: Mapping[int, ServerReport | None] = field(default_factory=dict)
    in_use: bool = False  # by a job that runs

    def of(self, part: SetPart) -> Found:
        return self.found.get(part, Found.ABSENT)

    @property
    def running(self) -> list[RuntimePod]:
        """The running pods whose node is known, in the order of their indexes."""
        return [pod for pod in self.pods if pod.is_running and pod.node]

    @property
    def nodes(self) -> Mapping[str, str]:
        """The name of the running pod by node; if a node has several, the one with the lowest index."""
        # The pods are in the order of their indexes, so the lowest index of a node is the last one to be set.
        return {pod.node: pod.name for pod in reversed(self.running)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetInputs:
    """The inputs of a reconcile of a set. `fresh_name` is random and new for every reconcile."""

    spec: SampleSetSpec
    deleted: bool
    record: SetRecord
    observed: SetObserved
    fresh_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create an object of the set."""

    part: SetPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete an object of the set."""

    part: SetPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Set the number of runtime servers."""

    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelNode:
    """Set the set's label on a node, or remove it if the value is None."""

    node: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostOptions:
    """Post the options of a job to these servers, except those that already have them."""

    job: str
    servers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate:
    """End the running and queued jobs of all servers of the set. Later posts wait until this has succeeded."""


CacheAction: TypeAlias = Create | Delete | Scale | LabelNode | PostOptions | Terminate


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDecision:
    """What to record, and what to do after that.

    The next reconcile is after `wake_after` seconds, or with None at the next change. `gone`: no object is left.
    """

    record: SetRecord
    actions: tuple[CacheAction, ...] = ()
    events: tuple[SampleEvent, ...] = ()
    wake_after: float | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """What PostgreSQL stores about a SampleJob. Its field names are stored, so they never change.

    `job` is the name of its option files. It was posted to `servers` of the set with the uid `set_uid`. `progress` is
    what these servers last reported; None means that none of them did.
    """

    phase: SampleJobPhase = SampleJobPhase.NONE
    job: str = ""
    digest: str = ""
    servers: tuple[int, ...] = ()
    set_uid: str = ""
    progress: OperationProgress | None = None
    message: str = ""
    complaint: Complaint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobObserved:
    """The observed state of a job and its set.

    `set_uid` is empty if the set does not exist; a set that `is_leaving` accepts no new jobs. `replicas` is its desired
    number of servers, if known. `running` holds the indexes of its running servers, and `answers` the answers of those
    that have the job. `digest` is that of the options that the job would have now; `refusal` says why there are none.
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
    """The inputs of a reconcile of a job. `fresh_name` is random and new for every reconcile."""

    spec: SampleJobSpec
    record: JobRecord
    observed: JobObserved
    fresh_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDecision:
    """Like `SetDecision`, for a job. `refreshes_set`: the set must be reconciled, since its cache has changed."""

    record: JobRecord
    actions: tuple[CacheAction, ...] = ()
    events: tuple[SampleEvent, ...] = ()
    wake_after: float | None = None
    refreshes_set: bool = False

"""The answers of the gateway as types. `make openapi` generates this module from openapi/openapi.json.

A field whose value comes from a closed set is a `str`, so that the client can read the answer of a newer gateway. The
enumerations list the values that are known.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    FALSE = "False"
    TRUE = "True"
    UNKNOWN = "Unknown"


class Condition(Struct, frozen=True, kw_only=True, rename="camel"):
    """A condition as in Kubernetes."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: datetime
    observed_generation: int


class JobKind(StrEnum):
    """A kind of manifest whose manifests become pods."""

    DIJOB = "DIJob"
    GENERIC_JOB = "GenericJob"
    MX_JOB = "MxJob"
    TRAINING_JOB = "TrainingJob"


class Aggregate(Struct, frozen=True, kw_only=True, rename="camel"):
    """Number of replicas in each phase. The sum is the desired number of replicas."""

    creating: int
    pending: int
    running: int
    succeeded: int
    failed: int
    unknown: int
    deleted: int


class FirstFailure(Struct, frozen=True, kw_only=True, rename="camel"):
    """The first failed attempt of a job."""

    replica: str
    attempt: int
    node: str | None = None
    container: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    last_lines: list[str] | None = None
    at: datetime


class JobPhase(StrEnum):
    """The phase of a job of any kind; docs/status.md maps it to the native phases of each kind."""

    QUEUED = "Queued"
    CREATING = "Creating"
    PENDING = "Pending"
    RUNNING = "Running"
    SCALING = "Scaling"
    RESTARTING = "Restarting"
    PAUSED = "Paused"
    RESUMING = "Resuming"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    TIMED_OUT = "TimedOut"
    CANCELLED = "Cancelled"
    UNKNOWN = "Unknown"


class JobWarning(Struct, frozen=True, kw_only=True, rename="camel"):
    """A field of a valid manifest that does not have the effect that its author may expect."""

    source: str
    task: str | None = None
    pointer: str
    message: str


class PendingCode(StrEnum):
    """Why replicas are not running yet."""

    ADMISSION_CHECKS = "AdmissionChecks"
    BACK_OFF = "BackOff"
    CHANGED_BY_CLUSTER = "ChangedByCluster"
    CLUSTER_DENIED = "ClusterDenied"
    CLUSTER_ERROR = "ClusterError"
    CLUSTER_THROTTLED = "ClusterThrottled"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    CONTAINER_CONFIG = "ContainerConfig"
    CONTAINER_CREATING = "ContainerCreating"
    CONTAINER_ENDED = "ContainerEnded"
    CONTAINER_START = "ContainerStart"
    CRASH_LOOP = "CrashLoop"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    GANG_UNSCHEDULABLE = "GangUnschedulable"
    IMAGE_PULL = "ImagePull"
    INITIALIZING = "Initializing"
    INVALID_IMAGE_NAME = "InvalidImageName"
    NAME_TERMINATING = "NameTerminating"
    NAMESPACE_NOT_FOUND = "NamespaceNotFound"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    NODE_NOT_READY = "NodeNotReady"
    NOT_SCHEDULED = "NotScheduled"
    PREVIOUS_OBJECTS = "PreviousObjects"
    PRIORITY_CLASS_MISSING = "PriorityClassMissing"
    QUEUE_MISSING = "QueueMissing"
    QUEUE_STOPPED = "QueueStopped"
    QUEUED = "Queued"
    QUOTA_EXCEEDED = "QuotaExceeded"
    REFUSED_BY_CLUSTER = "RefusedByCluster"
    REQUEUE_BACK_OFF = "RequeueBackOff"
    SANDBOX = "Sandbox"
    SCHEDULING_GATED = "SchedulingGated"
    SERVICE_ACCOUNT_NOT_FOUND = "ServiceAccountNotFound"
    UNSCHEDULABLE = "Unschedulable"
    VOLUME = "Volume"
    WAITING_FOR_GANG = "WaitingForGang"
    WAITING_FOR_KUEUE = "WaitingForKueue"
    WAITING_FOR_POD_LIMIT = "WaitingForPodLimit"
    WAITING_FOR_QUOTA = "WaitingForQuota"


class PendingReason(Struct, frozen=True, kw_only=True, rename="camel"):
    """Why replicas do not run, or the fault of replicas that run."""

    code: str
    message: str
    since: datetime | None = None
    replicas: list[str]
    count: int
    started: bool


class Eviction(Struct, frozen=True, kw_only=True, rename="camel"):
    """Why and when Kueue last took the admission of a job back."""

    reason: str
    message: str
    at: datetime | None = None
    preempted_by: str | None = None


class Queueing(Struct, frozen=True, kw_only=True, rename="camel"):
    """The queue of a job, and what Kueue has decided. That of a job that has ended stays as it was at its end."""

    name: str
    admitted: bool
    queued_at: datetime | None = None
    admitted_at: datetime | None = None
    eviction: Eviction | None = None


class Status(Struct, frozen=True, kw_only=True, rename="camel"):
    """The uniform status of a job of any kind."""

    phase: str
    reason: str
    message: str
    observed_generation: int
    started_at: datetime | None = None
    finished_at: datetime | None = None
    observed_at: datetime | None = None
    warnings: list[JobWarning]
    aggregate: Aggregate
    pending_reasons: list[PendingReason]
    restarts_in_place: int
    still_running: int
    first_failure: FirstFailure | None = None
    queue: Queueing | None = None


class TaskScaling(Struct, frozen=True, kw_only=True, rename="camel"):
    """A task that can be scaled while the job is live."""

    replicas: int
    min: int
    max: int


class Job(Struct, frozen=True, kw_only=True, rename="camel"):
    """A job of any kind."""

    uid: str
    namespace: str
    name: str
    kind: str
    generation: int
    deleted_at: datetime | None = None
    status: Status
    conditions: list[Condition]
    api_version: str
    labels: dict[str, str]
    annotations: dict[str, str]
    created_at: datetime
    created_by: str
    created_by_id: str | None = None
    spec: dict[str, Any]
    native_status: dict[str, Any]
    retry_of: str | None = None
    imported_at: datetime | None = None
    scaling: dict[str, TaskScaling]
    purge_at: datetime | None = None


class JobStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """A job without its spec and native status. It is cheap to poll."""

    uid: str
    namespace: str
    name: str
    kind: str
    generation: int
    deleted_at: datetime | None = None
    status: Status
    conditions: list[Condition]


class JobSummary(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a table of jobs shows: a job without its manifest, conditions and native status."""

    uid: str
    namespace: str
    name: str
    kind: str
    generation: int
    created_at: datetime
    created_by: str
    created_by_id: str | None = None
    deleted_at: datetime | None = None
    labels: dict[str, str]
    status: Status
    imported_at: datetime | None = None


class SampleNode(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a node of a SampleSet has cached."""

    node: str
    server: str
    cached_bytes: int | None = None
    message: str


class RemovalStage(StrEnum):
    """The stages of the removal of a SampleSet, in their order."""

    NODE_LABELS = "nodeLabels"
    RUNTIME = "runtime"
    PODS = "pods"
    SERVICE = "service"
    CLAIM = "claim"
    VOLUME = "volume"
    GONE = "gone"


class SampleCache(Struct, frozen=True, kw_only=True, rename="camel"):
    """How much of a SampleSet's data is cached, summed over its runtime servers."""

    total_bytes: int
    cached_bytes: int
    whole: bool
    observed_at: datetime | None = None


class SampleProgress(Struct, frozen=True, kw_only=True, rename="camel"):
    """How far an operation on a SampleSet is, as its runtime servers last reported. Sums over the servers that did."""

    files_done: int | None = None
    files_total: int | None = None
    bytes_done: int | None = None
    servers_reporting: int
    servers: int


class SampleRuntime(Struct, frozen=True, kw_only=True, rename="camel"):
    """How many runtime servers of a SampleSet are ready. A runtime server serves the cache of one partition."""

    ready: int
    wanted: int


class SetPhase(StrEnum):
    """The phase of a SampleSet; empty until its volume is bound."""

    NEW = ""
    BOUND = "Bound"
    MOUNT = "Mount"
    SYNCING = "Syncing"
    SYNC_FAILED = "SyncFailed"
    PARTIAL_READY = "PartialReady"
    READY = "Ready"


class SampleSetState(Struct, frozen=True, kw_only=True, rename="camel"):
    """The status of a SampleSet."""

    phase: str
    reason: str
    message: str
    observed_generation: int
    started_at: datetime | None = None
    finished_at: datetime | None = None
    observed_at: datetime | None = None
    warnings: list[JobWarning]
    cache: SampleCache | None = None
    runtime: SampleRuntime
    sync: SampleProgress | None = None
    removal: str | None = None


class SampleSet(Struct, frozen=True, kw_only=True, rename="camel"):
    """A data cache: a volume and the servers next to it."""

    uid: str
    namespace: str
    name: str
    kind: str
    generation: int
    deleted_at: datetime | None = None
    status: SampleSetState
    conditions: list[Condition]
    api_version: str
    labels: dict[str, str]
    annotations: dict[str, str]
    created_at: datetime
    created_by: str
    created_by_id: str | None = None
    spec: dict[str, Any]
    native_status: dict[str, Any]
    nodes: list[SampleNode]


class SampleSetStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """A SampleSet without its spec and native status. This is the cheapest representation to poll."""

    uid: str
    namespace: str
    name: str
    kind: str
    generation: int
    deleted_at: datetime | None = None
    status: SampleSetState
    conditions: list[Condition]


class SampleSetSummary(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a table of SampleSets shows: an object without its manifest, conditions and native status."""

    uid: str
    namespace: str
    name: str
    kind: str
    generation: int
    created_at: datetime
    created_by: str
    created_by_id: str | None = None
    deleted_at: datetime | None = None
    labels: dict[str, str]
    status: SampleSetState


class JobType(StrEnum):
    """The operations on a SampleSet."""

    SYNC = "sync"
    WARMUP = "warmup"
    RMR = "rmr"
    CLEAR = "clear"


class SampleJobPhase(StrEnum):
    """The phase of a SampleJob; empty until a runtime server has it."""

    NEW = ""
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class SampleJobState(Struct, frozen=True, kw_only=True, rename="camel"):
    """The status of a SampleJob."""

    phase: str
    reason: str
    message: str
    observed_generation: int
    started_at: datetime | None = None
    finished_at: datetime | None = None
    observed_at: datetime | None = None
    warnings: list[JobWarning]
    type: str
    sample_set: str
    job_name: str | None = None
    progress: SampleProgress | None = None


class SampleJob(Struct, frozen=True, kw_only=True, rename="camel"):
    """A sync, warm-up, removal or clearing of the data of a SampleSet."""

    uid: str
    namespace: str
    name: str
    kind: str
    generation: int
    deleted_at: datetime | None = None
    status: SampleJobState
    conditions: list[Condition]
    api_version: str
    labels: dict[str, str]
    annotations: dict[str, str]
    created_at: datetime
    created_by: str
    created_by_id: str | None = None
    spec: dict[str, Any]
    native_status: dict[str, Any]


class SampleJobStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """A SampleJob without its spec and native status. This is the cheapest representation to poll."""

    uid: str
    namespace: str
    name: str
    kind: str
    generation: int
    deleted_at: datetime | None = None
    status: SampleJobState
    conditions: list[Condition]


class SampleJobSummary(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a table of SampleJobs shows: an object without its manifest, conditions and native status."""

    uid: str
    namespace: str
    name: str
    kind: str
    generation: int
    created_at: datetime
    created_by: str
    created_by_id: str | None = None
    deleted_at: datetime | None = None
    labels: dict[str, str]
    status: SampleJobState


class ContainerState(StrEnum):
    """The state of a container."""

    RUNNING = "running"
    TERMINATED = "terminated"
    WAITING = "waiting"


class Container(Struct, frozen=True, kw_only=True, rename="camel"):
    """A container of a pod."""

    name: str
    init: bool
    default: bool
    state: str
    ready: bool
    image: str | None = None
    restart_count: int
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


class Evidence(StrEnum):
    """Whether logs and Events of an ended attempt are in PostgreSQL. Until then, jobgate does not delete its pod."""

    NONE = "None"
    CAPTURED = "Captured"
    UNAVAILABLE = "Unavailable"


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    DISRUPTED = "Disrupted"
    STOPPED = "Stopped"


class ReplicaPhase(StrEnum):
    """The phase of a replica. The aggregate counts replicas by phase; the counts add up to the desired replicas."""

    CREATING = "Creating"
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"
    DELETED = "Deleted"


class Attempt(Struct, frozen=True, kw_only=True, rename="camel"):
    """The life of one pod of a replica."""

    number: int
    pod_uid: str | None = None
    phase: str
    outcome: str | None = None
    evidence: str
    evidence_reason: str | None = None
    node: str | None = None
    pod_ip: str | None = field(name="podIP", default=None)
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    containers: list[Container]
    log_container: str | None = None


class Replica(Struct, frozen=True, kw_only=True, rename="camel"):
    """One member of a task. The fields about a pod concern the current attempt."""

    name: str
    task: str
    rank: int
    phase: str
    attempt: int
    restart_count: int
    restarts_in_place: int
    disruptions: int
    leaving: bool
    retry_at: datetime | None = None
    node: str | None = None
    pod_ip: str | None = field(name="podIP", default=None)
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    containers: list[Container]
    attempts: list[Attempt]
    log_attempt: int | None = None


class History(Struct, frozen=True, kw_only=True, rename="camel"):
    """One entry of the history of a job. It concerns one replica if `task` and `rank` are set."""

    seq: int
    at: datetime
    phase: str
    reason: str
    message: str
    actor: str
    actor_id: str | None = None
    task: str | None = None
    rank: int | None = None
    attempt: int | None = None


class EventOrigin(StrEnum):
    """`evidence`: an event of the pod of an ended attempt. `pending`: why a replica is pending now. `controller`: an
    action of the controller for an object of a kind without pods.
    """

    CONTROLLER = "controller"
    EVIDENCE = "evidence"
    PENDING = "pending"


class Event(Struct, frozen=True, kw_only=True, rename="camel"):
    """An event: a pending reason or a Kubernetes event of a job, or an action of the controller for other kinds."""

    source: str
    task: str | None = None
    rank: int | None = None
    attempt: int | None = None
    type: str
    reason: str
    message: str
    count: int
    first_seen_at: datetime | None = None
    last_seen_at: datetime | None = None


class ScaleOutcome(StrEnum):
    """The outcome of a request for another size."""

    REACHED = "Reached"
    REFUSED = "Refused"
    REPLACED = "Replaced"
    JOB_ENDED = "JobEnded"


class ScaleRecord(Struct, frozen=True, kw_only=True, rename="camel"):
    """A change of the desired number of replicas of a task, and its outcome."""

    seq: int
    task: str
    from_replicas: int
    to_replicas: int
    actor: str
    actor_id: str | None = None
    reason: str
    requested_at: datetime
    settled_at: datetime | None = None
    outcome: str | None = None
    message: str


class Kind(Struct, frozen=True, kw_only=True, rename="camel"):
    """An accepted kind of manifest."""

    kind: str
    api_versions: list[str]
    resource: str
    mutable_fields: list[str]
    supports_pause: bool
    json_schema: dict[str, Any]


class JobOfSet(Struct, frozen=True, kw_only=True, rename="camel"):
    """A SampleJob of a SampleSet."""

    uid: str
    name: str
    type: str
    phase: str
    progress: SampleProgress | None = None


class MountingJob(Struct, frozen=True, kw_only=True, rename="camel"):
    """A job that mounts the claim of a SampleSet, and is live or has replicas that still run."""

    uid: str
    name: str
    kind: str
    phase: str


class Dependents(Struct, frozen=True, kw_only=True, rename="camel"):
    """The dependents of a SampleSet, the newest 100 of each sort."""

    jobs: list[MountingJob]
    sample_jobs: list[JobOfSet]


class FieldError(Struct, frozen=True, kw_only=True, rename="camel"):
    """One error of a request."""

    pointer: str
    code: str
    detail: str
    accepted: str | None = None


class ProblemCode(StrEnum):
    """A stable code for programs. Later versions may have further codes, so treat an unknown one by its status."""

    ACCESS_CHANGED = "AccessChanged"
    ALREADY_FINISHED = "AlreadyFinished"
    AUTHORIZATION_PENDING = "AuthorizationPending"
    CANCELLING = "Cancelling"
    CLUSTER_DENIED = "ClusterDenied"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    CONFLICT = "Conflict"
    CONTENDED = "Contended"
    CROSS_ORIGIN = "CrossOrigin"
    DATABASE_CONTENDED = "DatabaseContended"
    DATABASE_UNAVAILABLE = "DatabaseUnavailable"
    DEBUG_MODE = "DebugMode"
    DELETED = "Deleted"
    FORBIDDEN = "Forbidden"
    HEADERS_TOO_LARGE = "HeadersTooLarge"
    IDEMPOTENCY_KEY_REUSED = "IdempotencyKeyReused"
    IMMUTABLE_FIELD = "ImmutableField"
    INTERNAL_ERROR = "InternalError"
    INVALID_ENTITY_TAG = "InvalidEntityTag"
    INVALID_MANIFEST = "InvalidManifest"
    INVALID_NAME = "InvalidName"
    INVALID_PAGE_TOKEN = "InvalidPageToken"
    INVALID_PARAMETER = "InvalidParameter"
    INVALID_PATTERN = "InvalidPattern"
    INVALID_QUANTITY = "InvalidQuantity"
    INVALID_REDIRECT = "InvalidRedirect"
    INVALID_SELECTOR = "InvalidSelector"
    INVALID_TIME = "InvalidTime"
    INVALID_TOKEN = "InvalidToken"
    ISSUER_UNAVAILABLE = "IssuerUnavailable"
    KEY_IN_FLIGHT = "KeyInFlight"
    LEASE_LOST = "LeaseLost"
    LOG_DAMAGED = "LogDamaged"
    LOG_STORE_UNREACHABLE = "LogStoreUnreachable"
    MALFORMED_DOCUMENT = "MalformedDocument"
    MALFORMED_REQUEST = "MalformedRequest"
    METHOD_NOT_ALLOWED = "MethodNotAllowed"
    NAME_TAKEN = "NameTaken"
    NO_CLUSTER = "NoCluster"
    NO_GRANT = "NoGrant"
    NO_INVENTORY = "NoInventory"
    NO_LOG = "NoLog"
    NOT_FINISHED = "NotFinished"
    NOT_FOUND = "NotFound"
    NOT_REDACTABLE = "NotRedactable"
    NOT_STORABLE = "NotStorable"
    OVERLOADED = "Overloaded"
    PAUSE_NOT_SUPPORTED = "PauseNotSupported"
    POD_POLICY = "PodPolicy"
    PRECONDITION_FAILED = "PreconditionFailed"
    PRECONDITION_REQUIRED = "PreconditionRequired"
    PURGED = "Purged"
    REDACTED = "Redacted"
    REPEATED_PARAMETER = "RepeatedParameter"
    REQUEST_TIMEOUT = "RequestTimeout"
    REQUIRED = "Required"
    ROUTE_NOT_FOUND = "RouteNotFound"
    SCALE_NOT_SUPPORTED = "ScaleNotSupported"
    SHUTTING_DOWN = "ShuttingDown"
    SIGN_IN_REFUSED = "SignInRefused"
    SLOW_DOWN = "SlowDown"
    STARTING = "Starting"
    TARGET_TOO_LONG = "TargetTooLong"
    TOO_LARGE = "TooLarge"
    TOO_MANY = "TooMany"
    TOO_MANY_BODIES = "TooManyBodies"
    TOO_MANY_CONNECTIONS = "TooManyConnections"
    TOO_MANY_HEADERS = "TooManyHeaders"
    TOO_MANY_KEPT_JOBS = "TooManyKeptJobs"
    TOO_MANY_OPEN = "TooManyOpen"
    TOO_MANY_PODS = "TooManyPods"
    TOO_MANY_REQUESTS = "TooManyRequests"
    TOO_MANY_SIGN_INS = "TooManySignIns"
    UNAUTHENTICATED = "Unauthenticated"
    UNAVAILABLE = "Unavailable"
    UNCONFIRMED = "Unconfirmed"
    UNKNOWN_ATTEMPT = "UnknownAttempt"
    UNKNOWN_CONTAINER = "UnknownContainer"
    UNKNOWN_HOST = "UnknownHost"
    UNKNOWN_PARAMETER = "UnknownParameter"
    UNKNOWN_RANK = "UnknownRank"
    UNKNOWN_TASK = "UnknownTask"
    UNSUPPORTED_MEDIA_TYPE = "UnsupportedMediaType"
    WRONG_CLUSTER = "WrongCluster"
    WRONG_ROUTE = "WrongRoute"


class Problem(Struct, frozen=True, kw_only=True, rename="camel"):
    """An error answer: problem details of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldError] | None = None


class FindingEffect(StrEnum):
    """What a finding means for a job that is submitted unchanged."""

    FAILS = "Fails"
    WAITS = "Waits"
    WARNS = "Warns"


class ClusterFinding(Struct, frozen=True, kw_only=True, rename="camel"):
    """A refusal or a warning of the cluster about one object of a job."""

    object: str
    task: str | None = None
    pointer: str
    effect: str
    code: str
    detail: str


class ClusterCheck(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the cluster answers to a server-side dry run of the objects, one replica of each task."""

    is_complete: bool
    detail: str
    findings: list[ClusterFinding]


class RestartPolicy(StrEnum):
    """After which ends a replica is restarted."""

    ALWAYS = "Always"
    NEVER = "Never"
    ON_FAILURE = "OnFailure"


class TaskPlan(Struct, frozen=True, kw_only=True, rename="camel"):
    """A task of a planned job."""

    name: str
    replicas: int
    restart_policy: str
    restart_limit: int | None = None


class Plan(Struct, frozen=True, kw_only=True, rename="camel"):
    """What jobgate would make of the manifest: tasks, names of pods and Services, and deadlines in seconds."""

    tasks: list[TaskPlan]
    pods: list[str]
    services: list[str]
    active_deadline_seconds: int | None = None
    pending_deadline_seconds: int | None = None
    start_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None


class RoomOutcome(StrEnum):
    """What would happen to a job that is submitted now. `WouldBeRefused` is a refusal with 409 `TooManyPods`."""

    HAS_ROOM = "HasRoom"
    WOULD_WAIT = "WouldWait"
    WOULD_BE_REFUSED = "WouldBeRefused"
    NO_KUEUE = "NoKueue"
    UNKNOWN = "Unknown"


class QueueCheck(Struct, frozen=True, kw_only=True, rename="camel"):
    """Whether the job has room now: within the limits of live pods, and in its queue, by what the controller has
    recorded of it. Kueue decides later and may decide otherwise: priorities, preemption and the nodes of flavors
    are not considered.
    """

    name: str | None = None
    outcome: str
    code: str | None = None
    detail: str
    observed_at: datetime | None = None
    stale: bool


class DryRun(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a submission would store, and the Kubernetes objects that it would create. A dry run stores nothing.
    `manifests` has the objects of the job itself and of the first replicas of each task, at most about 100 objects
    and 4 MiB. `manifestsOmitted` is the number of the other objects.
    """

    dry_run: bool
    manifest: dict[str, Any]
    warnings: list[JobWarning]
    plan: Plan
    manifests: list[dict[str, Any]]
    manifests_omitted: int
    cluster: ClusterCheck | None = None
    queue: QueueCheck | None = None


class ResourceDryRun(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a submission would store. A dry run stores nothing."""

    dry_run: bool
    manifest: dict[str, Any]
    warnings: list[JobWarning]


class PostedManifest(Struct, frozen=True, kw_only=True, rename="camel"):
    """The manifest of an object as it was posted."""

    manifest: dict[str, Any] | None = None


class Redaction(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a redaction changed."""

    uid: str
    namespace: str
    name: str
    changed: int
    in_cluster: bool
    next_page_token: str | None = None


class QueuedJob(Struct, frozen=True, kw_only=True, rename="camel"):
    """A job that waits in a queue."""

    position: int | None = None
    kind: str
    name: str
    uid: str
    priority: int
    since: datetime | None = None
    code: str
    message: str


class Quota(Struct, frozen=True, kw_only=True, rename="camel"):
    """The quota of a resource in a flavor, as quantities of Kubernetes. Null is what is not known."""

    flavor: str
    resource: str
    nominal_quota: str | None = None
    used: str | None = None
    used_by_queue: str | None = None
    cohort_free: str | None = None
    cohort_most: str | None = None


class JobQueue(Struct, frozen=True, kw_only=True, rename="camel"):
    """A LocalQueue of Kueue, as the controller observes it."""

    namespace: str
    name: str
    cluster_queue: str
    cohort: str | None = None
    active: bool
    message: str
    resources: list[Quota]
    pending: int
    admitted: int
    pending_jobs: list[QueuedJob]
    pending_jobs_omitted: int
    observed_at: datetime


class KueueState(StrEnum):
    """What the controller knows of Kueue. `listed`: its queues. `absent`: the cluster does not serve it, or
    JOBGATE_QUEUES is off. `denied`: jobgate has no right to read its objects. `unknown`: they are not listed yet. A
    later version may have further states.
    """

    ABSENT = "absent"
    DENIED = "denied"
    LISTED = "listed"
    UNKNOWN = "unknown"


class Kueue(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the controller knows of Kueue."""

    state: str
    message: str


class JobQueuePage(Struct, frozen=True, kw_only=True, rename="camel"):
    """A page of queues, by namespace and name."""

    kueue: Kueue
    items: list[JobQueue]
    next_page_token: str | None = None


class Uses(Struct, frozen=True, kw_only=True, rename="camel"):
    """How much of something each use has."""

    useful: float
    repeated: float
    disrupted: float
    idle: float
    total: float


class UsageGroup(Struct, frozen=True, kw_only=True, rename="camel"):
    """The usage of a group of jobs. Fields by which the usage is not added up are null."""

    queued_seconds: float
    resources: dict[str, Uses]
    cost: Uses | None = None
    namespace: str | None = None
    user: str | None = None
    queue: str | None = None
    kind: str | None = None
    day: str | None = None
    labels: dict[str, str]


class UsagePage(Struct, frozen=True, kw_only=True, rename="camel"):
    """A page of usage, by the values of `by`."""

    first_day: str
    last_day: str
    by: list[str]
    observed_at: datetime
    currency: str | None = None
    items: list[UsageGroup]
    next_page_token: str | None = None


class JobUsage(Struct, frozen=True, kw_only=True, rename="camel"):
    """What one job has used."""

    queued_seconds: float
    resources: dict[str, Uses]
    cost: Uses | None = None
    observed_at: datetime
    currency: str | None = None


class Oidc(Struct, frozen=True, kw_only=True, rename="camel"):
    """How users sign in at the OIDC issuer of the gateway. Unless `enabled`, all other fields are null or empty."""

    enabled: bool
    issuer: str | None = None
    client_id: str | None = None
    scopes: list[str]
    authorization_endpoint: str | None = None
    device_authorization_endpoint: str | None = None


class OidcToken(Struct, frozen=True, kw_only=True, rename="camel"):
    """The outcome of a sign-in."""

    token: str
    refresh_token: str | None = None
    expires_at: datetime


class Role(StrEnum):
    """The role of an API token. Each role includes the rights of the one before it; docs/access.md lists them."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    ADMIN = "admin"


class Grant(Struct, frozen=True, kw_only=True, rename="camel"):
    """A role in some namespaces."""

    role: str
    namespaces: list[str] | None = None


class Caller(Struct, frozen=True, kw_only=True, rename="camel"):
    """The caller of the request, and what its token permits."""

    name: str
    actor_id: str | None = None
    role: str
    namespaces: list[str] | None = None
    grants: list[Grant]
    administers: bool
    expires_at: datetime | None = None

"""The enumerations that all layers share. Their values are stored as text, so another spelling needs a migration."""

from enum import StrEnum
from typing import Final, Self

from typing_extensions import override


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

    @property
    def is_terminal(self) -> bool:
        return self in TERMINAL_PHASES


TERMINAL_PHASES = frozenset({JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.TIMED_OUT, JobPhase.CANCELLED})


class LegacySpelling(StrEnum):
    """An enumeration that also accepts the lower-case values of version 0.1, which may still run during an upgrade."""

    @classmethod
    @override
    def _missing_(cls, value: object) -> Self | None:
        return next((member for member in cls if member.value.lower() == value), None)


class ReplicaPhase(LegacySpelling):
    """The phase of a replica. The aggregate counts replicas by phase; the counts add up to the desired replicas."""

    CREATING = "Creating"  # no pod yet, back-off included, or a pod that no node has been found for
    PENDING = "Pending"  # bound to a node, one or more containers have not started
    RUNNING = "Running"  # all containers have started, at least one runs or is being restarted in place
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"  # the pod's state cannot be obtained: its node does not answer
    DELETED = "Deleted"  # stopped by pause, cancel or clean-up, or vanished permanently

    @property
    def is_live(self) -> bool:
        return self in (
            ReplicaPhase.CREATING,
            ReplicaPhase.PENDING,
            ReplicaPhase.RUNNING,
            ReplicaPhase.UNKNOWN,
        )


COUNTERS: Final = {phase: phase.value.lower() for phase in ReplicaPhase}
"""The name of the aggregate's field that counts replicas in each phase: `creating` for Creating."""


class Outcome(LegacySpelling):
    """How an attempt ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    DISRUPTED = "Disrupted"  # the cluster ended the pod: not counted by restart limits
    STOPPED = "Stopped"  # jobgate stopped the pod: pause, cancel, scale down or clean-up; fires no rule


class Use(StrEnum):
    """What the time was good for in which a pod held its requests, or a job waited."""

    USEFUL = "useful"  # of attempts that succeeded, still run, or were stopped by a client
    REPEATED = "repeated"  # of attempts that failed, so that the work must be done again
    DISRUPTED = "disrupted"  # of attempts that the cluster ended
    IDLE = "idle"  # while other replicas were awaited, and after the job was stopped or had ended
    QUEUED = "queued"  # of a job that waits and holds no node


class WarningSource(StrEnum):
    """Who warns about a job: jobgate when it accepts the manifest, or the cluster when it creates the objects."""

    JOBGATE = "jobgate"
    CLUSTER = "cluster"


class StopReason(StrEnum):
    """Why jobgate stops a running attempt. It is stored before the pod is deleted."""

    PAUSE = "Paused"
    CANCEL = "Cancelled"
    CLEAN_UP = "CleanUp"
    REMOVE = "Removed"
    SCALE_DOWN = "ScaledDown"
    START_DEADLINE = "StartDeadlineExceeded"
    EVICT = "Evicted"  # by Kueue, which requires the quota of the job
    UNPLACEABLE = "Unplaceable"  # it waits for a gang or a node of its topology that cannot come any more


class ScaleOutcome(StrEnum):
    """The outcome of a request for another size."""

    REACHED = "Reached"  # the requested replicas run or have finished, and all others are gone
    REFUSED = "Refused"  # by the cluster
    REPLACED = "Replaced"  # by a newer request for the same task
    JOB_ENDED = "JobEnded"


class Evidence(LegacySpelling):
    """Whether logs and Events of an ended attempt are in PostgreSQL. Until then, jobgate does not delete its pod."""

    NONE = "None"
    CAPTURED = "Captured"
    UNAVAILABLE = "Unavailable"


class RestartPolicy(StrEnum):
    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    ALWAYS = "Always"


class RestartScope(StrEnum):
    """What a restart limit counts: the restarts of each replica, or those of the job.

    Replicas that fail while the job restarts belong to that restart.
    """

    REPLICA = "replica"
    JOB = "job"


class CleanUpPolicy(StrEnum):
    """Which pods are deleted once the job has ended."""

    NONE = "None"
    UNFINISHED = "Unfinished"
    ALL = "All"


class RuleOutcome(StrEnum):
    """The end of replicas that a rule waits for.

    The job succeeds by `success`, and fails by `failure` or `end` (any).
    """

    SUCCESS = "success"
    FAILURE = "failure"
    END = "end"


class Quantifier(StrEnum):
    ALL = "all"
    ANY = "any"
    REST = "the rest"  # all ranks have ended, and at least one has reached the outcome


class ConditionType(StrEnum):
    """The uniform conditions of a job. A kind shows them under the names of its kind."""

    INITIALIZED = "Initialized"
    RUNNING = "Running"
    REPLICA_FAILURE = "ReplicaFailure"
    PAUSED = "Paused"
    COMPLETED = "Completed"
    FAILED = "Failed"
    SCHEDULER_UNAVAILABLE = "SchedulerUnavailable"  # this cluster does not have the requested scheduler
    READY = "Ready"  # of a SampleSet
    SYNCED = "Synced"  # of a SampleSet


class PendingCode(StrEnum):
    """Why a replica does not run, or its fault while it runs: a stable contract, explained in docs/status.md."""

    QUEUED = "Queued"  # stored; the controller has not reconciled it yet
    PREVIOUS_OBJECTS = "PreviousObjects"  # a finished job of the same name still has objects
    NAME_TERMINATING = "NameTerminating"  # the pod of the previous attempt is still being deleted
    BACK_OFF = "BackOff"  # waiting before the next attempt
    UNSCHEDULABLE = "Unschedulable"
    GANG_UNSCHEDULABLE = "GangUnschedulable"  # the pods of a gang cannot all be placed
    WAITING_FOR_GANG = "WaitingForGang"  # it has no pod before the gang of its job is placed
    SCHEDULING_GATED = "SchedulingGated"
    NOT_SCHEDULED = "NotScheduled"  # no scheduler has reported a result yet
    IMAGE_PULL = "ImagePull"
    INVALID_IMAGE_NAME = "InvalidImageName"
    CONTAINER_CONFIG = "ContainerConfig"  # a ConfigMap, Secret or key that the containers need is missing
    CONTAINER_CREATING = "ContainerCreating"
    CONTAINER_START = "ContainerStart"  # the runtime could not start the command
    CRASH_LOOP = "CrashLoop"
    CONTAINER_ENDED = "ContainerEnded"  # of a running replica; its other containers still run
    VOLUME = "Volume"
    SANDBOX = "Sandbox"  # network or sandbox could not be set up
    INITIALIZING = "Initializing"  # init containers are at work
    NOT_READY_NODE = "NodeNotReady"
    QUOTA_EXCEEDED = "QuotaExceeded"
    WAITING_FOR_POD_LIMIT = "WaitingForPodLimit"  # the other live jobs of the namespace have all pods that it may have
    WAITING_FOR_QUOTA = "WaitingForQuota"  # this and the following: of a job that waits for its admission by Kueue
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    QUEUE_STOPPED = "QueueStopped"
    QUEUE_MISSING = "QueueMissing"
    PRIORITY_CLASS_MISSING = "PriorityClassMissing"
    ADMISSION_CHECKS = "AdmissionChecks"
    REQUEUE_BACK_OFF = "RequeueBackOff"
    WAITING_FOR_KUEUE = "WaitingForKueue"  # Kueue has not answered, or jobgate cannot read its objects
    SERVICE_ACCOUNT_NOT_FOUND = "ServiceAccountNotFound"
    NAMESPACE_NOT_FOUND = "NamespaceNotFound"
    REFUSED = "RefusedByCluster"  # the cluster refuses further replicas, or the message of a 403 is unknown
    CHANGED_BY_CLUSTER = "ChangedByCluster"  # a webhook changes what jobgate knows a new object by
    CLUSTER_DENIED = "ClusterDenied"  # jobgate itself lacks a permission
    CLUSTER_THROTTLED = "ClusterThrottled"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    CLUSTER_ERROR = "ClusterError"


# Codes that do not name the cause of the wait. The Events of the pod may name it.
VAGUE = frozenset({PendingCode.NOT_SCHEDULED, PendingCode.CONTAINER_CREATING, PendingCode.INITIALIZING})


class Reason(StrEnum):
    """The reasons of job phases, replicas and history rows that jobgate itself sets."""

    SUBMITTED = "Submitted"
    CREATING = "CreatingPods"
    WAITING_FOR_PODS = "WaitingForPods"
    STARTED = "ReplicasStarted"
    RESTARTING = "ReplicaRestarting"
    SCALING = "Scaling"
    PAUSING = "Pausing"
    PAUSED = "Paused"
    RESUMING = "Resuming"
    EVICTING = "Evicting"
    DEACTIVATED = "Deactivated"  # in the queue, by Kueue or an administrator: the job is paused
    CANCELLING = "Cancelling"
    CANCELLED = "Cancelled"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    PENDING_DEADLINE_EXCEEDED = "PendingDeadlineExceeded"
    START_DEADLINE_EXCEEDED = "StartDeadlineExceeded"  # the job has freed its nodes, and starts again later
    RULE_FULFILLED = "RuleFulfilled"
    SUCCESS_IMPOSSIBLE = "SuccessImpossible"
    NO_RULE_FULFILLED = "NoRuleFulfilled"
    # An object that is not jobgate's has a name that the job needs.
    NAME_CONFLICT = "NameConflict"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    NAMESPACE_DELETED = "NamespaceDeleted"
    REFUSED_BY_CLUSTER = "RefusedByCluster"
    CONTAINER_RESTARTED = "ContainerRestarted"  # of history rows: in place, by the kubelet
    REPLICA_FAILED = "ReplicaFailed"  # of history rows: no attempt follows now
    NODE_LOST = "NodeLost"
    # The node refused the pod and gave no reason.
    POD_REFUSED = "PodRefused"
    POD_VANISHED = "PodVanished"
    POD_DELETED = "PodDeleted"
    DISRUPTED = "Disrupted"
    # PostgreSQL refuses to store the status that the controller computed.
    NOT_WRITABLE = "NotWritable"
    # The reconcile of the job raises an error: a fault of jobgate. Every minute it is tried again.
    NOT_RECONCILABLE = "NotReconcilable"
    # Of `jobgate recover`: the anchor had a terminal phase, the cluster had no objects of the job, or pods of later
    # attempts than the record.
    ENDED_IN_CLUSTER = "EndedInCluster"
    OBJECTS_MISSING = "ObjectsMissing"
    ADOPTED = "Adopted"

"""The enumerations for SampleSets and SampleJobs.

Some values are stored, so values may be added but never renamed. Phases and the names of events are upstream's.
"""

from enum import StrEnum


class JobType(StrEnum):
    """The operations on a SampleSet."""

    SYNC = "sync"
    WARMUP = "warmup"
    RMR = "rmr"
    CLEAR = "clear"


class SetPhase(StrEnum):
    """The phase of a SampleSet; empty until its volume is bound."""

    NONE = ""
    BOUND = "Bound"
    MOUNT = "Mount"
    SYNCING = "Syncing"
    SYNC_FAILED = "SyncFailed"
    PARTIAL_READY = "PartialReady"
    READY = "Ready"


class SampleJobPhase(StrEnum):
    """The phase of a SampleJob; empty until a runtime server has it."""

    NONE = ""
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


ENDED_JOB_PHASES = frozenset({SampleJobPhase.SUCCEEDED, SampleJobPhase.FAILED})


class SetPart(StrEnum):
    """The Kubernetes objects of a SampleSet, named as in upstream's events, in the order of their creation."""

    PV = "PV"
    PVC = "PVC"
    TOKEN = "TokenSecret"  # noqa: S105  a kind of object
    SERVICE = "Service"
    RUNTIME = "StatefulSet"


class Found(StrEnum):
    """What the cluster has under the name of a set's object."""

    ABSENT = "absent"
    OURS = "ours"
    FOREIGN = "foreign"  # without the labels of this set: another client's, or of a deleted set of the same name


class RemovalStage(StrEnum):
    """The stages of the removal of a SampleSet, in their order."""

    NODE_LABELS = "nodeLabels"
    RUNTIME = "runtime"
    PODS = "pods"
    SERVICE = "service"
    CLAIM = "claim"
    VOLUME = "volume"
    GONE = "gone"


class ServerJobState(StrEnum):
    """The state of a job on one runtime server."""

    UNKNOWN = "unknown"  # the server does not answer
    NOT_POSTED = "notPosted"  # the server does not have the options
    WAITING = "waiting"  # the server has the options and has not started the job
    RUNNING = "running"
    SUCCESS = "success"
    FAIL = "fail"


class Need(StrEnum):
    """What a reconcile needs besides the set's objects: each takes a request to the cluster or to a runtime server."""

    SECRET = "secret"  # noqa: S105  the volume's Secret
    WARNING = "warning"  # why the first server that is not ready does not start
    SYNC_OPTIONS = "syncOptions"  # the options that a sync would have now
    SYNC_RESULT = "syncResult"
    CACHE = "cache"


class SampleEventType(StrEnum):
    """The types of events, as in Kubernetes."""

    NORMAL = "Normal"
    WARNING = "Warning"

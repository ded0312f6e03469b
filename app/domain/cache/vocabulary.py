"""The closed lists of words, stored as text and never renamed; phases and event names are upstream's."""

from enum import StrEnum


class SetPhase(StrEnum):
    NONE = ""
    BOUND = "Bound"
    MOUNT = "Mount"
    SYNCING = "Syncing"
    SYNC_FAILED = "SyncFailed"
    PARTIAL_READY = "PartialReady"
    READY = "Ready"


class SampleJobPhase(StrEnum):
    NONE = ""
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Resource(StrEnum):
    """What a set is made of, by the words of upstream's events, in the order of creation."""

    PV = "PV"
    PVC = "PVC"
    TOKEN = "TokenSecret"  # noqa: S105  a kind of object
    SERVICE = "Service"
    RUNTIME = "StatefulSet"


class Found(StrEnum):
    """What the cluster has under a resource's name."""

    ABSENT = "absent"
    OURS = "ours"
    FOREIGN = "foreign"  # without the set's labels, or of an older set of the name


class Stage(StrEnum):
    """What the removal of a set waits for, in this order."""

    NODE_LABELS = "nodeLabels"
    RUNTIME = "runtime"
    PODS = "pods"
    SERVICE = "service"
    CLAIM = "claim"
    VOLUME = "volume"
    GONE = "gone"


class ResultStatus(StrEnum):
    """What a server says of a job."""

    UNKNOWN = "unknown"  # it does not answer
    NOT_POSTED = "notPosted"  # it does not have the options
    WAITING = "waiting"  # it has, and has not begun
    RUNNING = "running"
    SUCCESS = "success"
    FAIL = "fail"


class Need(StrEnum):
    """What a pass wants to be found out beside what is watched: it takes a request to the cluster or to a server."""

    SECRET = "secret"  # noqa: S105  the volume's Secret is read
    WARNING = "warning"  # the newest Warning of the first runtime pod
    SYNC_OPTIONS = "syncOptions"  # the sync's options as they would be now
    SYNC_RESULT = "syncResult"
    CACHE = "cache"


class EventType(StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"

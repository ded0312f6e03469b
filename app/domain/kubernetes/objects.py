"""The fields of Kubernetes objects that jobgate reads, as frozen structs.

Unknown fields are ignored; missing and null fields take their default. Times are aware datetimes.
`app.k8s.codec` describes how malformed objects are decoded.
"""

from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec

Time = Annotated[datetime, msgspec.Meta(tz=True)]


# The structs form no reference cycles. With gc=False, the garbage collector does not visit them, of which the mirror
# holds several for each pod.
class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None

    @property
    def version(self) -> int:
        """The resource version as an integer, which KEP-5504 guarantees it to be; 0 if it is absent."""
        return int(self.resource_version) if self.resource_version.isdecimal() else 0

    @property
    def deleted_at(self) -> datetime | None:
        """When the deletion was requested: the deletionTimestamp is the end of the grace period."""
        if self.deletion_timestamp is None:
            return None
        return self.deletion_timestamp - timedelta(seconds=self.deletion_grace_period_seconds or 0)


class ObjectCondition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class Waiting(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    reason: str = ""
    message: str = ""


class Running(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    started_at: Time | None = None


class Terminated(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename={
        "exit_code": "exitCode",
        "started_at": "startedAt",
        "finished_at": "finishedAt",
        "container_id": "containerID",
    },
):
    exit_code: int = 0
    signal: int | None = None
    reason: str = ""
    message: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None
    container_id: str = ""


class ContainerState(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The state of a container. At most one field is set; none means waiting."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename={"container_id": "containerID", "restart_count": "restartCount", "last_state": "lastState"},
):
    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    image: str = ""
    container_id: str = ""


class RestartExitCodes(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The exit codes of a rule; `operator` is In or NotIn."""

    operator: str = ""
    values: tuple[int, ...] = ()


class RestartRule(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """After which exits the kubelet restarts a container in place, whatever the restart policy says."""

    exit_codes: RestartExitCodes = RestartExitCodes()


class Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The name of a container, and when the kubelet restarts it. The policy of a sidecar is `Always`."""

    name: str = ""
    restart_policy: str = ""
    restart_policy_rules: tuple[RestartRule, ...] = ()


class SchedulingGate(msgspec.Struct, frozen=True, gc=False):
    """A name that keeps a pod from the scheduler until a client removes it."""

    name: str = ""


class SchedulingGroup(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The PodGroup of Kubernetes with which the scheduler places a pod."""

    pod_group_name: str = ""


class PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduling_group: SchedulingGroup = SchedulingGroup()
    node_selector: dict[str, str] = {}
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()


class PodStatus(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename={
        "pod_ip": "podIP",
        "host_ip": "hostIP",
        "start_time": "startTime",
        "init_container_statuses": "initContainerStatuses",
        "container_statuses": "containerStatuses",
    },
):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = ""
    host_ip: str = ""
    start_time: Time | None = None
    conditions: tuple[ObjectCondition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Time | None = None


class NodeSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    conditions: tuple[ObjectCondition, ...] = ()
    allocatable: dict[str, str] = {}


class Node(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        """Whether the condition Ready is True. It is Unknown if the node does not answer."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


class ObjectReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class EventSource(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    component: str = ""
    host: str = ""


class EventSeries(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    count: int = 0
    last_observed_time: Time | None = None


class Event(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An Event of core/v1. Older recorders set the timestamps and count, newer ones `event_time` and `series`."""

    metadata: Metadata = Metadata()
    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: Time | None = None
    last_timestamp: Time | None = None
    event_time: Time | None = None
    series: EventSeries | None = None
    source: EventSource = EventSource()
    reporting_component: str = ""

    @property
    def last_seen(self) -> datetime | None:
        """When it last happened, from the field that its recorder sets."""
        observed = self.series.last_observed_time if self.series else None
        return observed or self.last_timestamp or self.event_time or self.metadata.creation_timestamp

    @property
    def times(self) -> int:
        """How often it happened."""
        return (self.series.count if self.series else None) or self.count or 1

    @property
    def component(self) -> str:
        """The component that recorded the Event, such as `default-scheduler` or `kubelet`."""
        return self.source.component or self.reporting_component


class Object(msgspec.Struct, frozen=True):
    """An object of any kind: its metadata, and the whole object as plain JSON values."""

    metadata: Metadata
    raw: dict[str, Any]

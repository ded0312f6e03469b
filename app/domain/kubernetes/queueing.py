"""The fields of Kueue's objects that jobgate reads, as frozen structs like those of `objects`."""

from typing import Any

import msgspec

from app.domain.kubernetes.label_selector import LabelSelector
from app.domain.kubernetes.objects import Metadata, ObjectCondition
from app.domain.kubernetes.topology import TopologyAssignment


class PodSetCount(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A pod set, or how many pods of it are meant."""

    name: str = ""
    count: int = 0


class ClassRef(msgspec.Struct, frozen=True, gc=False):
    """The class that the priority of a Workload comes from."""

    kind: str = ""
    name: str = ""


class WorkloadSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    active: bool = True
    queue_name: str = ""
    priority: int = 0
    priority_class_ref: ClassRef | None = None
    pod_sets: tuple[PodSetCount, ...] = ()


class PodSetAssignment(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The ResourceFlavor of each resource of a pod set, and the nodes of its pods if a flavor has a topology.

    `count` is the number of pods that have quota; None is all that need it.
    """

    name: str = ""
    count: int | None = None
    flavors: dict[str, str] = {}
    topology_assignment: TopologyAssignment | None = None


class WorkloadAdmission(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class PodSetUpdate(msgspec.Struct, frozen=True, rename="camel"):
    """What an admission check adds to the pods of a pod set."""

    name: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    tolerations: tuple[dict[str, Any], ...] = ()


class AdmissionCheck(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    state: str = ""
    message: str = ""
    pod_set_updates: tuple[PodSetUpdate, ...] = ()


class WorkloadStatus(msgspec.Struct, frozen=True, rename="camel"):
    conditions: tuple[ObjectCondition, ...] = ()
    admission: WorkloadAdmission | None = None
    admission_checks: tuple[AdmissionCheck, ...] = ()
    reclaimable_pods: tuple[PodSetCount, ...] = ()


class Workload(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class FlavorSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The labels and tolerations of the nodes of a ResourceFlavor."""

    node_labels: dict[str, str] = {}
    tolerations: tuple[dict[str, Any], ...] = ()


class ResourceFlavor(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: FlavorSpec = FlavorSpec()


class ResourceTotal(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """How much of a resource Workloads hold. Quantities of custom resources may be integers."""

    name: str = ""
    total: str | int = "0"


class FlavorTotals(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """How much of each resource of a ResourceFlavor Workloads hold."""

    name: str = ""
    resources: tuple[ResourceTotal, ...] = ()


class LocalQueueSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    cluster_queue: str = ""


class LocalQueueStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    conditions: tuple[ObjectCondition, ...] = ()
    pending_workloads: int = 0
    admitted_workloads: int = 0
    flavors_reservation: tuple[FlavorTotals, ...] = ()


class LocalQueue(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: LocalQueueSpec = LocalQueueSpec()
    status: LocalQueueStatus = LocalQueueStatus()


class ResourceQuota(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a ClusterQueue has of a resource, and how much it borrows from its cohort or lends; None without a limit."""

    name: str = ""
    nominal_quota: str | int = "0"
    borrowing_limit: str | int | None = None
    lending_limit: str | int | None = None


class FlavorQuotas(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The quotas that a ClusterQueue has in one ResourceFlavor, by resource. `name` is that of the flavor."""

    name: str = ""
    resources: tuple[ResourceQuota, ...] = ()


class ResourceGroup(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Resources whose flavor Kueue chooses together: the first one that fits."""

    flavors: tuple[FlavorQuotas, ...] = ()


class ClusterQueueSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a ClusterQueue has, and the namespaces whose Workloads it admits; without a selector, those of none."""

    cohort_name: str = ""
    namespace_selector: LabelSelector | None = None
    resource_groups: tuple[ResourceGroup, ...] = ()


class ClusterQueueStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    conditions: tuple[ObjectCondition, ...] = ()
    flavors_reservation: tuple[FlavorTotals, ...] = ()


class ClusterQueue(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: ClusterQueueStatus = ClusterQueueStatus()


class CohortSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The quota of a Cohort itself, and the Cohort above it, which may not exist as an object."""

    parent_name: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()


class Cohort(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: CohortSpec = CohortSpec()


class PendingWorkload(msgspec.Struct, frozen=True, rename="camel"):
    """A Workload that waits, and its place in its ClusterQueue, from 0."""

    metadata: Metadata = Metadata()
    position_in_cluster_queue: int = 0


class PendingSummary(msgspec.Struct, frozen=True):
    """The first Workloads that wait in a queue."""

    items: tuple[PendingWorkload, ...] = ()

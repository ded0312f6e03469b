"""The table of the resources that the embedded API server serves."""

from dataclasses import dataclass
from functools import partial

from devcluster.errors import StatusError, bad_request

# Field selectors that all resources support.
_COMMON_FIELDS = frozenset({"metadata.name", "metadata.namespace"})
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, eq=False)
class ApiResource:
    """One resource: its names, subresources and field selectors, and where it differs from others."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    fields: frozenset[str] = frozenset()
    field_aliases: tuple[tuple[str, str], ...] = ()
    returns_deleted: bool = False  # the answer to a delete is the object, and not a Status
    unconditional_update: bool = True  # an update needs no resourceVersion
    create_on_update: bool = False  # a PUT creates a missing object
    has_generation: bool = False
    custom: bool = False  # as if defined by a CustomResourceDefinition: the items of its lists have kind and apiVersion

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def prefix(self) -> bytes:
        """Return what a stored body lacks at its start: kind and apiVersion, which the items of lists do not have."""
        return f'{{"kind":"{self.kind}","apiVersion":"{self.group_version}",'.encode()

    @property
    def selectable(self) -> frozenset[str]:
        return self.fields | _COMMON_FIELDS

    def refuse_field(self, path: str) -> StatusError:
        if self.fields:
            return bad_request(f"field label not supported: {path}")
        only = '"metadata.name", "metadata.namespace"' if self.namespaced else '"metadata.name"'
        return bad_request(f'"{path}" is not a known field selector: only {only}')


PODS = ApiResource(
    "pods",
    "Pod",
    short_names=("po",),
    returns_deleted=True,
    has_generation=True,
    subresources=("status", "log", "binding", "eviction", "proxy"),
    fields=frozenset(
        {
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        }
    ),
)
NAMESPACES = ApiResource(
    "namespaces",
    "Namespace",
    namespaced=False,
    short_names=("ns",),
    subresources=("status", "finalize"),
    fields=frozenset({"status.phase", "name"}),
    field_aliases=(("name", "metadata.name"),),
)
NODES = ApiResource(
    "nodes",
    "Node",
    namespaced=False,
    short_names=("no",),
    subresources=("status",),
    fields=frozenset({"spec.unschedulable"}),
)
SERVICES = ApiResource(
    "services",
    "Service",
    short_names=("svc",),
    subresources=("status",),
    returns_deleted=True,
    fields=frozenset({"spec.clusterIP", "spec.type"}),
)
CONFIG_MAPS = ApiResource("configmaps", "ConfigMap", short_names=("cm",))
SECRETS = ApiResource("secrets", "Secret", fields=frozenset({"type"}))
SERVICE_ACCOUNTS = ApiResource("serviceaccounts", "ServiceAccount", short_names=("sa",), returns_deleted=True)
EVENTS = ApiResource(
    "events",
    "Event",
    short_names=("ev",),
    fields=frozenset(
        {
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        }
    ),
    field_aliases=(("source", "source.component"),),
)
QUOTAS = ApiResource(
    "resourcequotas",
    "ResourceQuota",
    short_names=("quota",),
    subresources=("status",),
    returns_deleted=True,
)
LEASES = ApiResource("leases", "Lease", group="coordination.k8s.io", unconditional_update=False, create_on_update=True)
PERSISTENT_VOLUMES = ApiResource(
    "persistentvolumes",
    "PersistentVolume",
    namespaced=False,
    short_names=("pv",),
    subresources=("status",),
    returns_deleted=True,
)
PERSISTENT_VOLUME_CLAIMS = ApiResource(
    "persistentvolumeclaims",
    "PersistentVolumeClaim",
    short_names=("pvc",),
    subresources=("status",),
    returns_deleted=True,
)
STATEFUL_SETS = ApiResource(
    "statefulsets",
    "StatefulSet",
    group="apps",
    short_names=("sts",),
    subresources=("status", "scale"),
    has_generation=True,
)
CONTROLLER_REVISIONS = ApiResource("controllerrevisions", "ControllerRevision", group="apps")
# Those of TensorStack's scheduler, Volcano and scheduler-plugins.
POD_GROUPS = tuple(
    ApiResource(
        "podgroups",
        "PodGroup",
        group=group,
        version=version,
        short_names=("pg",),
        subresources=("status",),
        unconditional_update=False,
        has_generation=True,
        custom=True,
    )
    for group, version in (
        ("scheduler.tensorstack.dev", "v1beta1"),
        ("scheduling.volcano.sh", "v1beta1"),
        ("scheduling.x-k8s.io", "v1alpha1"),
    )
)

_kueue = partial(
    ApiResource,
    group="kueue.x-k8s.io",
    version="v1beta2",
    unconditional_update=False,
    has_generation=True,
    custom=True,
)
WORKLOADS = _kueue(
    "workloads", "Workload", short_names=("kwl", "kueueworkload", "kueueworkloads"), subresources=("status",)
)
LOCAL_QUEUES = _kueue("localqueues", "LocalQueue", short_names=("queue", "queues", "lq"), subresources=("status",))
CLUSTER_QUEUES = _kueue(
    "clusterqueues", "ClusterQueue", namespaced=False, short_names=("cq",), subresources=("status",)
)
COHORTS = _kueue("cohorts", "Cohort", namespaced=False, short_names=("co",), subresources=("status",))
RESOURCE_FLAVORS = _kueue(
    "resourceflavors", "ResourceFlavor", namespaced=False, short_names=("flavor", "flavors", "rf")
)
WORKLOAD_PRIORITY_CLASSES = _kueue(
    "workloadpriorityclasses", "WorkloadPriorityClass", namespaced=False, short_names=("wpc",)
)

BUILT_IN = (
    PODS, NAMESPACES, NODES, SERVICES, CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, EVENTS, QUOTAS, LEASES,
    PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS, CONTROLLER_REVISIONS,
    WORKLOADS, LOCAL_QUEUES, CLUSTER_QUEUES, COHORTS, RESOURCE_FLAVORS, WORKLOAD_PRIORITY_CLASSES,
)  # fmt: skip


class Catalog:
    """The resources that this server serves."""

    def __init__(self, *, pod_groups: bool) -> None:
        self.rows = (*BUILT_IN, *POD_GROUPS) if pod_groups else BUILT_IN
        self._by_address = {(row.group, row.version, row.plural): row for row in self.rows}
        self.by_key = {row.key: row for row in self.rows}

    def find(self, group: str, version: str, plural: str) -> ApiResource | None:
        return self._by_address.get((group, version, plural))

    def groups(self) -> dict[str, list[ApiResource]]:
        """Return the resources of each group and version, for discovery."""
        found: dict[str, list[ApiResource]] = {}
        for row in self.rows:
            found.setdefault(row.group_version, []).append(row)
        return found

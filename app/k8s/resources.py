"""The paths of resources, and whether the cluster serves an API."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from app.base.cancellation import TaskGroup
from app.base.clock import Clock
from app.k8s.errors import KubeError, KubeNotFound

DISCOVERY_TTL = 300.0  # seconds until an API that an administrator installs is noticed


@dataclass(frozen=True, slots=True)
class KubeResource:
    """One resource of the Kubernetes API."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path, with every name escaped. Without a namespace it covers all namespaces."""
        parts = ["apis" if "/" in self.api_version else "api", *self.api_version.split("/")]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", _segment(namespace)]
        elif self.namespaced and name is not None:
            raise ValueError(f"a {self.kind} is named within a namespace, and none was given for {name!r}")
        parts.append(self.plural)
        if name is not None:
            parts.append(_segment(name))
        if subresource is not None:
            parts.append(subresource)
        return "/" + "/".join(parts)


def _segment(name: str) -> str:
    if name in {"", ".", ".."}:
        raise ValueError(f"{name!r} names no object")
    return quote(name, safe="")


POD = KubeResource("v1", "Pod", "pods")
SERVICE = KubeResource("v1", "Service", "services")
CONFIG_MAP = KubeResource("v1", "ConfigMap", "configmaps")
SECRET = KubeResource("v1", "Secret", "secrets")
EVENT = KubeResource("v1", "Event", "events")
SERVICE_ACCOUNT = KubeResource("v1", "ServiceAccount", "serviceaccounts")
PERSISTENT_VOLUME_CLAIM = KubeResource("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
PERSISTENT_VOLUME = KubeResource("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
NODE = KubeResource("v1", "Node", "nodes", namespaced=False)
NAMESPACE = KubeResource("v1", "Namespace", "namespaces", namespaced=False)
STATEFUL_SET = KubeResource("apps/v1", "StatefulSet", "statefulsets")
LEASE = KubeResource("coordination.k8s.io/v1", "Lease", "leases")
PRIORITY_CLASS = KubeResource("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False)
# Those of gang schedulers. `app/domain/manifests/gangs.py` describes them.
POD_GROUPS = tuple(
    KubeResource(api_version, "PodGroup", "podgroups")
    for api_version in (
        "scheduling.k8s.io/v1beta1",
        "scheduling.k8s.io/v1alpha2",
        "scheduling.volcano.sh/v1beta1",
        "scheduling.x-k8s.io/v1alpha1",
        "scheduler.tensorstack.dev/v1beta1",
    )
)
WORKLOAD = KubeResource("kueue.x-k8s.io/v1beta2", "Workload", "workloads")
LOCAL_QUEUE = KubeResource("kueue.x-k8s.io/v1beta2", "LocalQueue", "localqueues")
CLUSTER_QUEUE = KubeResource("kueue.x-k8s.io/v1beta2", "ClusterQueue", "clusterqueues", namespaced=False)
COHORT = KubeResource("kueue.x-k8s.io/v1beta2", "Cohort", "cohorts", namespaced=False)
RESOURCE_FLAVOR = KubeResource("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "resourceflavors", namespaced=False)
# Of Kueue's visibility API, the newest version first. Kueue 0.15 has the older one.
PENDING_WORKLOADS = tuple(
    KubeResource(f"visibility.kueue.x-k8s.io/{version}", "PendingWorkloadsSummary", "clusterqueues", namespaced=False)
    for version in ("v1beta2", "v1beta1")
)
WORKLOAD_PRIORITY_CLASS = KubeResource(
    "kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass", "workloadpriorityclasses", namespaced=False
)

_TABLE = {
    (resource.api_version, resource.kind): resource
    for resource in (
        POD,
        SERVICE,
        CONFIG_MAP,
        SECRET,
        EVENT,
        SERVICE_ACCOUNT,
        PERSISTENT_VOLUME_CLAIM,
        PERSISTENT_VOLUME,
        NODE,
        NAMESPACE,
        STATEFUL_SET,
        LEASE,
        PRIORITY_CLASS,
        *POD_GROUPS,
        WORKLOAD,
        LOCAL_QUEUE,
        CLUSTER_QUEUE,
        COHORT,
        RESOURCE_FLAVOR,
        WORKLOAD_PRIORITY_CLASS,
    )
}


def resource_for(api_version: str, kind: str) -> KubeResource:
    """Return the resource of the apiVersion and kind of a manifest."""
    try:
        return _TABLE[api_version, kind]
    except KeyError:
        raise ValueError(f"no path is known for {kind} of {api_version}") from None


class Discovery:
    """Which APIs the cluster serves. Answers are cached for `ttl` seconds."""

    def __init__(
        self, fetch: Callable[[str], Awaitable[dict[str, Any]]], clock: Clock, ttl: float = DISCOVERY_TTL
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._ttl = ttl
        self._known: dict[str, tuple[float, frozenset[str]]] = {}

    async def has(self, resource: KubeResource) -> bool:
        """Return whether the cluster serves this kind.

        Without an answer the last one counts; without any this raises.
        """
        until, kinds = self._known.get(resource.api_version, (0.0, frozenset[str]()))
        now = self._clock.monotonic()
        if until <= now:
            kinds = await self._kinds(resource.api_version)
            self._known[resource.api_version] = (now + self._ttl, kinds)
        return resource.kind in kinds

    async def find_served(self, resources: Collection[KubeResource]) -> frozenset[str]:
        """Return the API versions of those of these resources that the cluster serves.

        Without an answer the last one counts; a resource without any is not among them.
        """
        async with TaskGroup() as group:
            for resource in resources:
                group.create_task(self._look_up(resource))
        return frozenset(
            resource.api_version
            for resource in resources
            if resource.kind in self._known.get(resource.api_version, (0.0, frozenset[str]()))[1]
        )

    def doubt(self, api_version: str) -> None:
        """Ask the cluster again when the API is next looked for: a request to it was answered with 404.

        Without an answer, the last one still counts.
        """
        if api_version in self._known:
            self._known[api_version] = (0.0, self._known[api_version][1])

    async def _look_up(self, resource: KubeResource) -> None:
        with suppress(KubeError):
            await self.has(resource)

    async def _kinds(self, api_version: str) -> frozenset[str]:
        try:
            answer = await self._fetch(("/apis/" if "/" in api_version else "/api/") + api_version)
        except KubeNotFound:
            return frozenset()
        except KubeError:
            if api_version in self._known:
                return self._known[api_version][1]
            raise
        resources = answer.get("resources")
        return frozenset(
            item["kind"] for item in resources or () if isinstance(item, dict) and isinstance(item.get("kind"), str)
        )

"""The strategy of each kind: its defaults, its validation, and the fields that an update may change.

This package is pure: it reads neither the store nor the clock nor the network.
"""

from devcluster.resources import ApiResource
from devcluster.strategies.base import Strategy
from devcluster.strategies.kueue import (
    ClusterQueueStrategy,
    CohortStrategy,
    LocalQueueStrategy,
    ResourceFlavorStrategy,
    WorkloadPriorityClassStrategy,
    WorkloadStrategy,
)
from devcluster.strategies.pods import PodStrategy
from devcluster.strategies.simple import (
    ConfigMapStrategy,
    CustomStrategy,
    EventStrategy,
    NamespaceStrategy,
    NodeStrategy,
    QuotaStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
    ServiceStrategy,
)
from devcluster.strategies.statefulsets import StatefulSetStrategy
from devcluster.strategies.volumes import PersistentVolumeClaimStrategy, PersistentVolumeStrategy

_KINDS: dict[str, Strategy] = {
    "Pod": PodStrategy(),
    "Namespace": NamespaceStrategy(),
    "Node": NodeStrategy(),
    "Service": ServiceStrategy(),
    "ConfigMap": ConfigMapStrategy(),
    "Secret": SecretStrategy(),
    "ServiceAccount": ServiceAccountStrategy(),
    "ResourceQuota": QuotaStrategy(),
    "Event": EventStrategy(),
    "PersistentVolume": PersistentVolumeStrategy(),
    "PersistentVolumeClaim": PersistentVolumeClaimStrategy(),
    "StatefulSet": StatefulSetStrategy(),
    "PodGroup": CustomStrategy(),
    "Workload": WorkloadStrategy(),
    "LocalQueue": LocalQueueStrategy(),
    "ClusterQueue": ClusterQueueStrategy(),
    "Cohort": CohortStrategy(),
    "ResourceFlavor": ResourceFlavorStrategy(),
    "WorkloadPriorityClass": WorkloadPriorityClassStrategy(),
}
_PLAIN = Strategy()


def strategy_for(resource: ApiResource) -> Strategy:
    return _KINDS.get(resource.kind, _PLAIN)

"""What each kind adds to the generic store: defaults, validation, and which half an update may touch.

Its law: values only. Nothing here reads the store, the clock or the network; admission and deletion do.
"""

from devcluster.kinds.base import Kind
from devcluster.kinds.pods import PodKind
from devcluster.kinds.simple import (
    ConfigMapKind,
    CustomKind,
    EventKind,
    NamespaceKind,
    NodeKind,
    QuotaKind,
    SecretKind,
    ServiceAccountKind,
    ServiceKind,
)
from devcluster.kinds.statefulsets import StatefulSetKind
from devcluster.kinds.volumes import PersistentVolumeClaimKind, PersistentVolumeKind
from devcluster.resources import Resource

_KINDS: dict[str, Kind] = {
    "Pod": PodKind(),
    "Namespace": NamespaceKind(),
    "Node": NodeKind(),
    "Service": ServiceKind(),
    "ConfigMap": ConfigMapKind(),
    "Secret": SecretKind(),
    "ServiceAccount": ServiceAccountKind(),
    "ResourceQuota": QuotaKind(),
    "Event": EventKind(),
    "PersistentVolume": PersistentVolumeKind(),
    "PersistentVolumeClaim": PersistentVolumeClaimKind(),
    "StatefulSet": StatefulSetKind(),
    "PodGroup": CustomKind(),
}
_PLAIN = Kind()


def kind_of(resource: Resource) -> Kind:
    return _KINDS.get(resource.kind, _PLAIN)

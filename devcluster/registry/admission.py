"""Admission of new objects: the checks and values that depend on the state of the cluster."""

import ipaddress

from devcluster.errors import FieldCause, forbidden, not_found
from devcluster.formats.objects import Object, is_terminating, meta, spec
from devcluster.registry import kueue_pods, quota
from devcluster.registry.store import ObjectStore
from devcluster.resources import NAMESPACES, PODS, SERVICE_ACCOUNTS, SERVICES, ApiResource

# The default service network of kubeadm.
_SERVICE_NETWORK = ipaddress.ip_network("10.96.0.0/16")


class Admission:
    """Checks namespaces, service accounts and quota, and allocates addresses."""

    def __init__(self, store: ObjectStore, toleration_seconds: int) -> None:
        self._store = store
        self._toleration_seconds = toleration_seconds

    def check_namespace(self, resource: ApiResource, namespace: str, name: str) -> None:
        record = self._store.get(NAMESPACES, "", namespace)
        if record is None:
            raise not_found("namespaces", namespace)
        if is_terminating(record.object):
            cause = FieldCause(
                "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
            )
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(resource.plural, name, why, group=resource.group, causes=(cause,))

    def mutate(self, resource: ApiResource, namespace: str, obj: Object) -> None:
        """Set the fields whose values the cluster chooses: default tolerations, gates and service addresses."""
        if resource is PODS:
            self._add_tolerations(obj)
            kueue_pods.gate(self._store, namespace, obj)
        if resource is SERVICES:
            self._allocate_address(obj)

    def check(self, resource: ApiResource, namespace: str, obj: Object) -> None:
        """Raise Forbidden if the service account of a pod does not exist."""
        if resource is not PODS:
            return
        account = spec(obj).get("serviceAccountName", "default")
        if self._store.get(SERVICE_ACCOUNTS, namespace, account) is None:
            missing = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
            raise forbidden("pods", str(meta(obj).get("name", "")), missing)

    def charge_quota(self, resource: ApiResource, namespace: str, obj: Object) -> None:
        if resource is PODS:
            quota.check(self._store, namespace, obj)

    def _add_tolerations(self, pod: Object) -> None:
        tolerations = pod.setdefault("spec", {}).setdefault("tolerations", [])
        # As the admission plugin DefaultTolerationSeconds does.
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
            # A toleration without a key or without an effect matches all keys or effects.
            if not any(
                entry.get("key", key) == key and entry.get("effect", "NoExecute") == "NoExecute"
                for entry in tolerations
            ):
                tolerations.append({
                    "key": key, "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": self._toleration_seconds,
                })  # fmt: skip

    def _allocate_address(self, service: Object) -> None:
        found = service.setdefault("spec", {})
        # A headless Service has the address "None", which its client has set.
        if found.get("clusterIP") or found.get("type") == "ExternalName":
            return
        taken = {spec(record.object).get("clusterIP") for record in self._store.iterate(SERVICES)}
        free = (str(host) for host in _SERVICE_NETWORK.hosts() if str(host) not in taken)
        found["clusterIP"] = next(free)
        found["clusterIPs"] = [found["clusterIP"]]

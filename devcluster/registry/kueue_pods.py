"""What Kueue's webhook does to new pods: it gates those that are for a queue."""

from devcluster.formats.objects import Object, labels, meta
from devcluster.registry.store import ObjectStore
from devcluster.resources import LOCAL_QUEUES

FINALIZER = "kueue.x-k8s.io/managed"
GATES = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")
_QUEUE = "kueue.x-k8s.io/queue-name"
_MANAGED = "kueue.x-k8s.io/managed"
# The controller of the pods has a Workload of its own for them, and removes the gates itself.
_SUSPENDING_PARENT = "kueue.x-k8s.io/pod-suspending-parent"
_EXEMPT = ("kube-system", "kueue-system")
_DEFAULT_QUEUE = "default"


def gate(store: ObjectStore, namespace: str, pod: Object) -> None:
    """Gate a pod that names a queue, one in a namespace with a default queue, and one with a suspending parent."""
    if namespace in _EXEMPT:
        return
    metadata = meta(pod)
    has_parent = _SUSPENDING_PARENT in (metadata.get("annotations") or {})
    if not has_parent:
        if not labels(pod).get(_QUEUE):
            if store.get(LOCAL_QUEUES, namespace, _DEFAULT_QUEUE) is None:
                return
            metadata["labels"] = {**labels(pod), _QUEUE: _DEFAULT_QUEUE}
        metadata["labels"][_MANAGED] = "true"
        metadata["finalizers"] = [*(metadata.get("finalizers") or []), FINALIZER]
    gates = pod.setdefault("spec", {}).setdefault("schedulingGates", [])
    present = [entry.get("name") for entry in gates]
    gates += [{"name": name} for name in GATES if name not in present]

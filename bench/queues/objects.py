"""A queue with quota for all, and the Workloads and jobs that are submitted to it: with the same pods."""

from typing import Any, Final

from bench.measuring.bodies import generic_job
from bench.measuring.kubernetes import ControlPlane

NAMESPACE: Final = "bench-queues"
QUEUE: Final = "team"
GROUP: Final = "/apis/kueue.x-k8s.io/v1beta2"
WORKLOADS: Final = f"{GROUP}/namespaces/{NAMESPACE}/workloads"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
JOBS: Final = f"/api/v1/namespaces/{NAMESPACE}/jobs"
BATCH_JOBS: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
_LABEL: Final = "kueue.x-k8s.io/queue-name"
_ENOUGH: Final = {"cpu": "10M", "memory": "1E"}  # Kueue admits every Workload as soon as it considers it


async def make_queue(plane: ControlPlane) -> None:
    """Create the namespace and its LocalQueue, whose ClusterQueue has one flavor."""
    await plane.namespace(NAMESPACE)
    resources = [{"name": name, "nominalQuota": quota} for name, quota in _ENOUGH.items()]
    flavors = [{"name": QUEUE, "resources": resources}]
    group = {"coveredResources": list(_ENOUGH), "flavors": flavors}
    await _create(plane, GROUP, "ResourceFlavor")
    await _create(plane, GROUP, "ClusterQueue", {"namespaceSelector": {}, "resourceGroups": [group]})
    await _create(plane, f"{GROUP}/namespaces/{NAMESPACE}", "LocalQueue", {"clusterQueue": QUEUE})


async def _create(plane: ControlPlane, where: str, kind: str, spec: dict[str, Any] | None = None) -> None:
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": QUEUE}, "spec": spec or {}}
    await plane.call("POST", f"{where}/{kind.lower()}s", body)


def job(name: str, replicas: int, *, queued: bool) -> dict[str, Any]:
    """Return a job with the queue, or with a label of the same size."""
    found = generic_job(name, replicas)
    found["metadata"]["labels"][_LABEL if queued else _LABEL.replace("kueue", "quiet")] = QUEUE
    return found


def batch_job(name: str, replicas: int) -> dict[str, Any]:
    """Return a Job of Kubernetes with the queue and the same pods. Kueue starts it when it is admitted."""
    template = {"spec": {"restartPolicy": "Never", "containers": _containers(replicas)}}
    spec = {"parallelism": replicas, "completions": replicas, "suspend": True, "template": template}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {_LABEL: QUEUE}},
        "spec": spec,
    }


def _containers(replicas: int) -> list[dict[str, Any]]:
    spec = generic_job("any", replicas)["spec"]["replicaSpecs"][0]["template"]["spec"]
    return [{key: item[key] for key in ("name", "image", "resources")} for item in spec["containers"]]


def workload(name: str, replicas: int) -> dict[str, Any]:
    """Return a Workload as jobgate creates it for a job, but without an owner."""
    pod_set = {"name": "worker", "count": replicas, "template": {"spec": {"containers": _containers(replicas)}}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name},
        "spec": {"queueName": QUEUE, "priority": 0, "podSets": [pod_set]},
    }

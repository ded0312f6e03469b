"""Request bodies of equal size: the same pods as a GenericJob and as a batch/v1 Job."""

import json
from typing import Any

NUMBER = "########"  # the load client replaces it by a number
# Two replicas make a job a group of pods, while the body stays as small as most bodies are.
REPLICAS = 2
_PADDING = "bench/padding"  # an annotation, because both sides store it without reading it


def _template() -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.example/team/trainer:2026.11",
        "command": ["python", "-u", "train.py"],
        "args": ["--epochs=10", "--data=/data/train", "--checkpoints=/data/checkpoints"],
        "env": [{"name": "OMP_NUM_THREADS", "value": "4"}, {"name": "LOG_LEVEL", "value": "info"}],
        "resources": {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"cpu": "4", "memory": "8Gi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    return {
        "metadata": {"labels": {"team": "research"}},
        "spec": {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]},
    }


def generic_job(name: str, replicas: int = REPLICAS) -> dict[str, Any]:
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": name, "labels": {"team": "research"}, "annotations": {_PADDING: ""}},
        "spec": {
            "successRules": [{"worker": [0, 1]}] if replicas == REPLICAS else [{"worker": [0]}],
            "replicaSpecs": [
                {
                    "type": "worker",
                    "replicas": replicas,
                    "restartPolicy": {"policy": "OnFailure", "limit": 3},
                    "template": _template(),
                }
            ],
        },
    }


def batch_job(name: str) -> dict[str, Any]:
    template = _template()
    template["spec"]["restartPolicy"] = "OnFailure"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"team": "research"}, "annotations": {_PADDING: ""}},
        "spec": {"parallelism": REPLICAS, "completions": REPLICAS, "backoffLimit": 3, "template": template},
    }


def pod(name: str, job: str = "") -> dict[str, Any]:
    """A pod as the Job controller creates it."""
    template = _template()
    labels = {**template["metadata"]["labels"], **({"batch.kubernetes.io/job-name": job} if job else {})}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**template["spec"], "nodeName": "node-1"}}


def encode(manifest: dict[str, Any]) -> bytes:
    return json.dumps(manifest, separators=(",", ":")).encode()


def equal_bodies(*manifests: dict[str, Any]) -> list[bytes]:
    """Pad all bodies to the size of the largest, with an annotation."""
    sizes = [len(encode(manifest)) for manifest in manifests]
    for manifest, size in zip(manifests, sizes, strict=True):
        manifest["metadata"]["annotations"][_PADDING] = "x" * (max(sizes) - size)
    return [encode(manifest) for manifest in manifests]

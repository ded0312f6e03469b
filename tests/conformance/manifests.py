"""The smallest objects that a control plane accepts."""

from typing import Any


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/none:1"}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def bound_pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    """A pod on a node that nobody plays: nothing but the test touches it."""
    return pod(name, nodeName="nobody", **spec)


def config_map(name: str = "c", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "data": {"key": "value"}}


def requesting(name: str, **amounts: str) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/none:1", "resources": {"requests": amounts}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


def owner(obj: dict[str, Any], kind: str = "ConfigMap") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }


def pods(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


def maps(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")

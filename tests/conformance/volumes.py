"""Persistent volumes for tests: cluster-wide objects, so each carries a name of its own and is taken away."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.clusters.kube import JSON_PATCH, KubeClient

VOLUMES = "/api/v1/persistentvolumes"


def volume(**spec: Any) -> dict[str, Any]:
    """10Gi that nobody asks for unless by the class, which is the volume's own name."""
    name = f"volume-{secrets.token_hex(4)}"
    found = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": name,
        "csi": {"driver": "csi.example.com", "volumeHandle": name},
        **spec,
    }
    return {"metadata": {"name": name, "labels": {"own": name}}, "spec": found}


def claim(storage_class: str, name: str = "c", size: str = "10Gi", **spec: Any) -> dict[str, Any]:
    found = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": size}},
        **spec,
    }
    return {"metadata": {"name": name}, "spec": found}


@asynccontextmanager
async def stored_volume(api: KubeClient, **spec: Any) -> AsyncIterator[str]:
    body = volume(**spec)
    name = body["metadata"]["name"]
    (await api.post(VOLUMES, body)).ok()
    try:
        await api.eventually(f"{VOLUMES}/{name}", lambda found: found["status"]["phase"] != "Pending")
        yield name
    finally:
        await remove(api, f"{VOLUMES}/{name}")


async def remove(api: KubeClient, path: str) -> None:
    """Delete it, whatever still protects it."""
    await api.delete(path)
    await api.patch(path, [{"op": "remove", "path": "/metadata/finalizers"}], JSON_PATCH)
    await api.gone(path)


def in_phase(wanted: str) -> Any:
    return lambda found: found["status"].get("phase") == wanted

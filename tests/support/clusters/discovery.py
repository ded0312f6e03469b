"""Where a cluster keeps the objects of a manifest, by its own discovery."""

from collections.abc import Mapping
from typing import Any

from tests.support.clusters.kube import KubeClient


async def collection_of(api: KubeClient, manifest: Mapping[str, Any]) -> str | None:
    """Return the path of the collection of the object; None if the cluster does not have its API."""
    version = manifest["apiVersion"]
    base = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    answer = await api.get(base)
    if answer.status == 404:
        return None
    (resource,) = (
        each for each in answer.ok()["resources"] if each["kind"] == manifest["kind"] and "/" not in each["name"]
    )
    namespace = f"/namespaces/{manifest['metadata']['namespace']}" if resource["namespaced"] else ""
    return f"{base}{namespace}/{resource['name']}"

"""The ConfigMaps and Secrets that pods refer to. They are fetched when needed, and cached for a short time."""

import asyncio
import base64
import time
from collections.abc import Iterable, Mapping
from typing import Any

from devcluster.errors import StatusError
from devcluster.node.kube.client import KubeClient

CONFIG_MAPS = "configmaps"
SECRETS = "secrets"

Reference = tuple[str, str]
"""The resource, configmaps or secrets, and the name of the object."""
Objects = Mapping[Reference, Mapping[str, Any] | None]


def container_references(container: Mapping[str, Any]) -> set[Reference]:
    found: set[Reference] = set()
    for entry in container.get("envFrom") or []:
        found |= _one(CONFIG_MAPS, entry.get("configMapRef")) | _one(SECRETS, entry.get("secretRef"))
    for entry in container.get("env") or []:
        source = entry.get("valueFrom") or {}
        found |= _one(CONFIG_MAPS, source.get("configMapKeyRef")) | _one(SECRETS, source.get("secretKeyRef"))
    return found


def volume_references(volumes: Iterable[Mapping[str, Any]]) -> set[Reference]:
    found: set[Reference] = set()
    for volume in volumes:
        found |= _one(CONFIG_MAPS, volume.get("configMap"))
        if secret := volume.get("secret"):
            found.add((SECRETS, secret.get("secretName", "")))
        for source in (volume.get("projected") or {}).get("sources") or []:
            found |= _one(CONFIG_MAPS, source.get("configMap")) | _one(SECRETS, source.get("secret"))
    return found


def _one(kind: str, reference: Mapping[str, Any] | None) -> set[Reference]:
    return {(kind, reference.get("name", ""))} if reference is not None else set()


def contents(kind: str, found: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the bytes of each key of a ConfigMap or Secret."""
    if kind == SECRETS:
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
    text = {key: value.encode() for key, value in (found.get("data") or {}).items()}
    return text | {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}


def as_text(objects: Objects, reference: Reference) -> dict[str, str] | None:
    """Return the values as text for environment variables. Bytes that are not UTF-8 reach the process unchanged."""
    found = objects.get(reference)
    if found is None:
        return None
    if reference[0] == CONFIG_MAPS:
        return dict(found.get("data") or {})
    return {key: value.decode(errors="surrogateescape") for key, value in contents(SECRETS, found).items()}


class ObjectCache:
    """Caches objects, since many pods of a job read the same ones: one request serves all calls within `max_age`."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._known: dict[tuple[str, Reference], tuple[float, Mapping[str, Any] | None]] = {}
        self._locks: dict[tuple[str, Reference], asyncio.Lock] = {}

    async def fetch(
        self, namespace: str, references: Iterable[Reference], *, max_age: float
    ) -> dict[Reference, Mapping[str, Any] | None]:
        """Return each object, or None if it does not exist.

        Raises:
            StatusError: the API server refused a request or did not answer.
        """
        return {reference: await self._fetch_one(namespace, reference, max_age) for reference in sorted(references)}

    async def _fetch_one(self, namespace: str, reference: Reference, max_age: float) -> Mapping[str, Any] | None:
        key = (namespace, reference)
        async with self._locks.setdefault(key, asyncio.Lock()):
            fetched, found = self._known.get(key, (float("-inf"), None))
            if time.monotonic() - fetched > max_age:
                # The age counts from the request: the object may have changed while the answer was on its way.
                asked = time.monotonic()
                found = await self._get(namespace, reference)
                self._known[key] = (asked, found)
            return found

    async def _get(self, namespace: str, reference: Reference) -> Mapping[str, Any] | None:
        kind, name = reference
        try:
            return await self._client.get(f"/api/v1/namespaces/{namespace}/{kind}/{name}")
        except StatusError as error:
            if error.code == 404:
                return None
            raise

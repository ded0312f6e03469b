"""Removes the objects of all SampleSets of an installation, except pods and Services, which jobs have as well."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from app.domain.cache.naming import node_label_of, token_secret_name
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Object
from app.k8s.api import KubeApi
from app.k8s.codec import NODE as NODE_CODEC
from app.k8s.codec import OBJECT
from app.k8s.errors import KubeConflict, KubeForbidden, KubeNotFound
from app.k8s.resources import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    SECRET,
    STATEFUL_SET,
    KubeResource,
)
from app.loops.leadership.lease import Leadership


class SetName(NamedTuple):
    namespace: str
    name: str


class SetUninstaller:
    """Removes the objects of SampleSets.

    `namespaces` are those in which they can be; None stands for all. The permissions for sets are optional. Objects
    that RBAC does not allow to list are treated as absent.
    """

    def __init__(
        self,
        api: KubeApi,
        leadership: Leadership,
        installation: str,
        *,
        namespaces: Sequence[str | None],
        request_seconds: float,
    ) -> None:
        self._api = api
        self._leadership = leadership
        self._installation = installation
        self._namespaces = namespaces
        self._seconds = request_seconds
        self.deleted: Counter[str] = Counter()

    async def remove_before_pods(self) -> None:
        """Remove node labels, token Secrets and StatefulSets, which would replace deleted pods."""
        volumes = await self._list(PERSISTENT_VOLUME, [None])
        servers = await self._list(STATEFUL_SET, self._namespaces)
        sets = _sets_of([*volumes, *servers])
        for found in sets:
            await self._unlabel(found)
            await self._remove_token(found)
        await self._remove(STATEFUL_SET, servers)

    async def remove_after_pods(self) -> None:
        """Remove claims and volumes. This comes after the pods, which keep claims in use."""
        await self._remove(PERSISTENT_VOLUME_CLAIM, await self._list(PERSISTENT_VOLUME_CLAIM, self._namespaces))
        await self._remove(PERSISTENT_VOLUME, await self._list(PERSISTENT_VOLUME, [None]))

    async def _unlabel(self, found: SetName) -> None:
        """Remove the label of a set from all nodes.

        A node label does not carry the installation. The set is known from a volume or StatefulSet that does.
        """
        key = node_label_of(found.namespace, found.name)
        for node in await self._api.list_all(NODE, codec=NODE_CODEC, label_selector=key):
            # Another controller may have become the leader during the list.
            self._leadership.guard(self._seconds)
            patch = {"metadata": {"labels": {key: None}}}
            with suppress(KubeNotFound):
                await self._api.merge_patch(NODE, node.metadata.name, patch=patch, timeout=self._seconds)

    async def _remove_token(self, found: SetName) -> None:
        """Delete the token Secret by its name. A list of Secrets would read the contents of all of them."""
        name = token_secret_name(found.name)
        try:
            secret = await self._api.get(SECRET, name, found.namespace, codec=OBJECT, timeout=self._seconds)
        except KubeNotFound:
            return
        if secret.metadata.labels.get(labels.INSTALLATION) == self._installation:
            await self._remove(SECRET, [secret])

    async def _list(self, resource: KubeResource, namespaces: Iterable[str | None]) -> list[Object]:
        selector = f"{labels.INSTALLATION}={self._installation},{labels.SAMPLE_SET_UID}"
        found: list[Object] = []
        for namespace in namespaces:
            with suppress(KubeForbidden, KubeNotFound):
                found += await self._api.list_all(resource, namespace, codec=OBJECT, label_selector=selector)
        return found

    async def _remove(self, resource: KubeResource, items: Iterable[Object]) -> None:
        for item in items:
            metadata = item.metadata
            namespace = metadata.namespace if resource.namespaced else None
            self._leadership.guard(self._seconds)
            with suppress(KubeNotFound, KubeConflict):
                await self._api.delete(resource, metadata.name, namespace, uid=metadata.uid, timeout=self._seconds)
            self.deleted[resource.kind] += 1


def _sets_of(items: Iterable[Object]) -> list[SetName]:
    """Return the sets to which the objects belong, by their labels."""
    found = {
        SetName(
            item.metadata.labels.get(labels.SAMPLE_SET_NAMESPACE, ""), item.metadata.labels.get(labels.INSTANCE, "")
        )
        for item in items
    }
    return sorted(name for name in found if name.namespace and name.name)

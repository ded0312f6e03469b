"""Takes what an installation's SampleSets have in the cluster out of it: what pods and Services are not."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from app.domain import labels
from app.domain.cache.naming import node_label_of, token_secret_name
from app.domain.objects import Object
from app.k8s.api import KubeApi
from app.k8s.codec import NODE as NODE_CODEC
from app.k8s.codec import OBJECT
from app.k8s.errors import Conflict, Forbidden, NotFound
from app.k8s.resources import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    SECRET,
    STATEFUL_SET,
    Resource,
)
from app.loops.leadership import Leadership


class SetName(NamedTuple):
    namespace: str
    name: str


class SetRemoval:
    """What is not allowed to be listed is taken for what was never made: the rights for sets are granted apart."""

    def __init__(
        self,
        api: KubeApi,
        leadership: Leadership,
        installation: str,
        *,
        namespaces: Sequence[str],
        request_seconds: float,
    ) -> None:
        self._api = api
        self._leadership = leadership
        self._installation = installation
        self._namespaces: Sequence[str | None] = list(namespaces) or [None]
        self._seconds = request_seconds
        self.deleted: Counter[str] = Counter()

    async def first(self) -> None:
        """Labels of nodes, the servers' tokens, and StatefulSets, which would make their pods anew."""
        volumes = await self._listed(PERSISTENT_VOLUME, [None])
        servers = await self._listed(STATEFUL_SET, self._namespaces)
        sets = _sets_of([*volumes, *servers])
        for found in sets:
            await self._unlabel(found)
            await self._remove_token(found)
        await self._remove(STATEFUL_SET, servers)

    async def last(self) -> None:
        """What pods mounted."""
        await self._remove(PERSISTENT_VOLUME_CLAIM, await self._listed(PERSISTENT_VOLUME_CLAIM, self._namespaces))
        await self._remove(PERSISTENT_VOLUME, await self._listed(PERSISTENT_VOLUME, [None]))

    async def _unlabel(self, found: SetName) -> None:
        """No node says whose a label is; a volume or StatefulSet of ours says that it is ours."""
        key = node_label_of(found.namespace, found.name)
        for node in await self._api.list_all(NODE, codec=NODE_CODEC, label_selector=key):
            self._leadership.guard(self._seconds)
            patch = {"metadata": {"labels": {key: None}}}
            with suppress(NotFound):
                await self._api.merge_patch(NODE, node.metadata.name, patch=patch, timeout=self._seconds)

    async def _remove_token(self, found: SetName) -> None:
        """By its name: to list Secrets would be to read all of them."""
        name = token_secret_name(found.name)
        try:
            secret = await self._api.get(SECRET, name, found.namespace, codec=OBJECT, timeout=self._seconds)
        except NotFound:
            return
        if secret.metadata.labels.get(labels.INSTALLATION) == self._installation:
            await self._remove(SECRET, [secret])

    async def _listed(self, resource: Resource, namespaces: Iterable[str | None]) -> list[Object]:
        selector = f"{labels.INSTALLATION}={self._installation},{labels.SAMPLE_SET_UID}"
        found: list[Object] = []
        for namespace in namespaces:
            with suppress(Forbidden, NotFound):
                found += await self._api.list_all(resource, namespace, codec=OBJECT, label_selector=selector)
        return found

    async def _remove(self, resource: Resource, items: Iterable[Object]) -> None:
        for item in items:
            metadata = item.metadata
            namespace = metadata.namespace if resource.namespaced else None
            self._leadership.guard(self._seconds)
            with suppress(NotFound, Conflict):
                await self._api.delete(resource, metadata.name, namespace, uid=metadata.uid, timeout=self._seconds)
            self.deleted[resource.kind] += 1


def _sets_of(items: Iterable[Object]) -> list[SetName]:
    found = {
        SetName(
            item.metadata.labels.get(labels.SAMPLE_SET_NAMESPACE, ""), item.metadata.labels.get(labels.INSTANCE, "")
        )
        for item in items
    }
    return sorted(one for one in found if one.namespace and one.name)

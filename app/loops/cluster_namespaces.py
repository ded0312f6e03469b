"""Follows the namespaces of the cluster and stores their names, so that requests to other namespaces are refused.

It also notices that a namespace was created again, so that its tenants do not see the objects of the former one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import structlog
from typing_extensions import override

from app.base.cancellation import TaskGroup, rounds
from app.base.clock import Clock
from app.db import cluster_namespaces
from app.db.cluster_namespaces import NamespaceLife
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.kubernetes.objects import Object
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT, ListPage
from app.k8s.resources import NAMESPACE
from app.k8s.watching.reflector import Pace, Reflector, ResourceSource
from app.loops.leadership.lease import Leadership

log = structlog.get_logger(__name__)

CHECK_EVERY = 1.0  # seconds between two checks whether the last contact is too old


class NamespaceSource(ResourceSource[Object]):
    """The namespaces of the cluster. Without the RBAC right to list them it fails, and they are never known.

    A list counts only if `verify` succeeds after it: another cluster behind the same address has other namespaces.
    """

    def __init__(self, api: KubeApi, verify: Callable[[], Awaitable[None]]) -> None:
        super().__init__(api, NAMESPACE, OBJECT)
        self._verify = verify

    @override
    async def list_page(self, continue_token: str, limit: int) -> ListPage[Object]:
        page = await super().list_page(continue_token, limit)
        await self._verify()
        return page


class _Lives:
    """A sink that has all namespaces by name, and their labels. `changed` is set when namespaces come and go."""

    def __init__(self) -> None:
        self.by_name: Mapping[str, NamespaceLife] = {}
        self.labels: dict[str, Mapping[str, str]] = {}
        self.changed = asyncio.Event()

    def replaced(self, objects: Sequence[Object]) -> None:
        self.labels = {obj.metadata.name: obj.metadata.labels for obj in objects}
        self._set({obj.metadata.name: _life(obj) for obj in objects})

    def applied(self, obj: Object) -> None:
        self.labels[obj.metadata.name] = obj.metadata.labels
        self._set({**self.by_name, obj.metadata.name: _life(obj)})

    def deleted(self, obj: Object) -> None:
        # Another namespace may have the name by now.
        deleted = obj.metadata.name, obj.metadata.uid
        self._set({name: life for name, life in self.by_name.items() if (name, life.uid) != deleted})
        if obj.metadata.name not in self.by_name:
            self.labels.pop(obj.metadata.name, None)

    def _set(self, lives: Mapping[str, NamespaceLife]) -> None:
        if lives != self.by_name:
            self.by_name = lives
            self.changed.set()


def _life(obj: Object) -> NamespaceLife:
    return NamespaceLife(obj.metadata.uid, obj.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC))


class ClusterNamespaces:
    """Stores the names of the namespaces while they are known: read, and followed until a moment ago."""

    def __init__(
        self,
        api: KubeApi,
        db: Database,
        leadership: Leadership,
        clock: Clock,
        *,
        verify: Callable[[], Awaitable[None]],
        stale_after: float,
    ) -> None:
        self._db = db
        self._leadership = leadership
        self._clock = clock
        self._stale_after = timedelta(seconds=stale_after)
        self._lives = _Lives()
        self._reflector = Reflector(NamespaceSource(api, verify), self._lives, clock, pace=Pace.within(stale_after))

    def labels_of(self, namespace: str) -> Mapping[str, str] | None:
        """Return the labels that a namespace had when it was observed last; None if it is not known."""
        return self._lives.labels.get(namespace)

    async def run(self) -> None:
        """Follow the namespaces until cancelled.

        Raises:
            LeaseLost: another controller holds the lease.
        """
        async with TaskGroup() as group:
            group.create_task(self._reflector.run())
            group.create_task(self._store_changes())

    async def _store_changes(self) -> None:
        # Differs from all that is known, so that the names that a former controller stored are replaced at once.
        stored: Mapping[str, NamespaceLife] | None = {}
        for _ in rounds():
            self._lives.changed.clear()
            known = self._known_namespaces()
            if known != stored:
                with suppress(DatabaseUnavailable):  # the next iteration tries again
                    await self._store(known)
                    stored = known
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_EVERY):
                    await self._lives.changed.wait()

    def _known_namespaces(self) -> Mapping[str, NamespaceLife] | None:
        """Return the namespaces, or None if they were never read, may not be read or may be outdated."""
        contact = self._reflector.last_contact
        if contact is None or self._clock.now() - contact > self._stale_after:
            return None
        # Every cluster has namespaces.
        return self._lives.by_name or None

    async def _store(self, lives: Mapping[str, NamespaceLife] | None) -> None:
        lease = self._leadership.lease
        # Before a new name is accepted for submissions, so that no tenant of it sees the objects of the former one.
        if lives is not None:
            for name in await cluster_namespaces.bind(self._db, lease, lives, self._clock.now()):
                log.warning("namespaces.created_again", namespace=name)
        await cluster_namespaces.store(self._db, lease, lives)

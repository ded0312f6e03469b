"""Follows the namespaces of the cluster and stores their names, so that requests to other namespaces are refused."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta

from typing_extensions import override

from app.cancellation import TaskGroup, rounds
from app.clock import Clock
from app.db import cluster_namespaces
from app.db.engine import Database
from app.db.errors import DatabaseUnavailable
from app.domain.kubernetes.objects import Object
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT, ListPage
from app.k8s.reflector import Pace, Reflector, ResourceSource
from app.k8s.resources import NAMESPACE
from app.loops.leadership.lease import Leadership

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


class _Names:
    """A sink that has the names of all namespaces. `changed` is set when they change."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        self.changed = asyncio.Event()

    def replaced(self, objects: Sequence[Object]) -> None:
        self._set(frozenset(obj.metadata.name for obj in objects))

    def applied(self, obj: Object) -> None:
        self._set(self.names | {obj.metadata.name})

    def deleted(self, obj: Object) -> None:
        self._set(self.names - {obj.metadata.name})

    def _set(self, names: frozenset[str]) -> None:
        if names != self.names:
            self.names = names
            self.changed.set()


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
        self._names = _Names()
        self._reflector = Reflector(NamespaceSource(api, verify), self._names, clock, pace=Pace.within(stale_after))

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
        stored: frozenset[str] | None = frozenset()
        for _ in rounds():
            self._names.changed.clear()
            known = self._known()
            if known != stored:
                with suppress(DatabaseUnavailable):  # the next iteration tries again
                    await self._store(known)
                    stored = known
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_EVERY):
                    await self._names.changed.wait()

    def _known(self) -> frozenset[str] | None:
        """Return the names, or None if they were never read, may not be read or may be outdated."""
        contact = self._reflector.last_contact
        if contact is None or self._clock.now() - contact > self._stale_after:
            return None
        # Every cluster has namespaces.
        return self._names.names or None

    async def _store(self, names: frozenset[str] | None) -> None:
        await cluster_namespaces.store(self._db, self._leadership.lease, names)

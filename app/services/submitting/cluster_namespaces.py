"""Refuses new objects in namespaces that the cluster does not have."""

import asyncio
from collections.abc import Sequence
from typing import Final

from app.base.backoff import ExponentialBackoff
from app.base.caches import BoundedCache
from app.base.clock import Clock
from app.db import cluster_namespaces
from app.db.objects import idempotency
from app.db.objects.idempotency import KeyId
from app.db.postgres.engine import Database
from app.domain.errors import NotFound
from app.services.reading.freshness import FreshnessReader

_CACHE_SECONDS: Final = 5.0  # a namespace that was found is not read again for so long
_MAX_CACHED: Final = 4096
# The controller learns of a new namespace a moment after its creation. A client may use it at once.
_PATIENCE_SECONDS: Final = 2.0
# Between two polls. The pauses grow, so that a request to a missing namespace costs a few queries and not the CPU time
# of several submissions.
_POLL: Final = ExponentialBackoff(first=0.1, longest=_PATIENCE_SECONDS)


class NamespaceCheck:
    """Checks that a namespace exists, as far as the controller knows the namespaces of the cluster.

    Without `required` every namespace is accepted, and its jobs wait until it is created.
    """

    def __init__(self, db: Database, clock: Clock, freshness: FreshnessReader, *, required: bool) -> None:
        self._db = db
        self._clock = clock
        self._freshness = freshness
        self._required = required
        # Until when a namespace is accepted without a read.
        self._accepted: BoundedCache[str, float] = BoundedCache(_MAX_CACHED)

    async def require(self, namespace: str, keys: Sequence[KeyId] = ()) -> None:
        """Require that the namespace exists, or that a request with one of these idempotency keys has a stored answer.

        Such a request is a repetition. It gets its stored answer although the namespace has been deleted.

        Raises:
            NotFound: the cluster has no such namespace.
        """
        if not self._required or (self._accepted.get(namespace) or 0.0) > self._clock.monotonic():
            return
        deadline, polls = self._clock.monotonic() + _PATIENCE_SECONDS, 0
        while await self._is_missing(namespace):
            if keys and await idempotency.any_known(self._db, keys):
                return
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise NotFound(f"the cluster has no namespace {namespace}: create it first")
            polls += 1
            await asyncio.sleep(min(_POLL.delay(polls), left))
        self._accepted.put(namespace, self._clock.monotonic() + _CACHE_SECONDS)

    async def _is_missing(self, namespace: str) -> bool:
        """Return whether the cluster is known not to have the namespace. Nothing is known if the status is stale."""
        return (
            await cluster_namespaces.exists(self._db, namespace) is False and not (await self._freshness.read()).stale
        )

"""The places of jobs in their queues, from Kueue's visibility API where the cluster serves it.

Kueue itself answers these requests through the API server, so they may fail while all else works. A place that is not
known stays unknown.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from app.base.cancellation import TaskGroup
from app.base.clock import Clock
from app.domain.kubernetes.queueing import PendingSummary
from app.k8s.api import KubeApi
from app.k8s.errors import KubeError, KubeNotFound
from app.k8s.resources import PENDING_WORKLOADS, Discovery, KubeResource

SUBRESOURCE: Final = "pendingworkloads"
_AT_ONCE: Final = 4
# Seconds without further requests after one that failed: a frozen Kueue would delay each read by its timeout.
_PAUSE: Final = 30.0


class QueuePositions:
    """Requests from Kueue the first thousand Workloads that wait in a ClusterQueue, once for all its LocalQueues."""

    def __init__(self, api: KubeApi, clock: Clock, timeout: float) -> None:
        self._api = api
        self._clock = clock
        self._timeout = timeout
        self._discovery = Discovery(api.get_raw, clock)
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._paused_until = float("-inf")

    async def read(self, cluster_queues: Collection[str]) -> Mapping[tuple[str, str], int]:
        """Return the places in these ClusterQueues, from 1, by namespace and name of the Workload."""
        if not cluster_queues or self._clock.monotonic() < self._paused_until:
            return {}
        served = await self._discovery.find_served(PENDING_WORKLOADS)
        resource = next((found for found in PENDING_WORKLOADS if found.api_version in served), None)
        if resource is None:
            return {}
        places: dict[tuple[str, str], int] = {}
        async with TaskGroup() as group:
            for name in cluster_queues:
                group.create_task(self._read(resource, name, places))
        return places

    async def _read(self, resource: KubeResource, name: str, places: dict[tuple[str, str], int]) -> None:
        async with self._at_once:
            if self._clock.monotonic() < self._paused_until:
                return
            try:
                answer = await self._api.get_raw(resource.path(None, name, SUBRESOURCE), timeout=self._timeout)
                found = msgspec.convert(answer, PendingSummary, strict=False)
            except KubeNotFound:
                return  # Kueue does not know the queue yet
            except (KubeError, msgspec.ValidationError):
                self._paused_until = self._clock.monotonic() + _PAUSE
                return
        for item in found.items:
            places[item.metadata.namespace, item.metadata.name] = item.position_in_cluster_queue + 1

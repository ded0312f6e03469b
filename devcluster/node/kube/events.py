"""Events about pods, as a kubelet records them. Repeated Events are counted, and no Event delays a pod.

Warnings are sent first, so that the reason of a failure is visible early even if many pods start at once.
"""

import asyncio
import hashlib
import itertools
import logging
from collections.abc import Mapping
from typing import Any

from devcluster import clock
from devcluster.errors import StatusError
from devcluster.node.kube.client import KubeClient

log = logging.getLogger(__name__)

# Bounds the memory if the API server is slow.
QUEUE_LIMIT = 5000
# The limit of a real API server.
MESSAGE_LIMIT = 1024


class EventRecorder:
    """Queues Events about the pods of a node, and sends them in the background."""

    def __init__(self, client: KubeClient, node: str) -> None:
        self._client = client
        self._node = node
        self._queue: asyncio.PriorityQueue[tuple[bool, int, str, dict[str, Any]]] = asyncio.PriorityQueue(QUEUE_LIMIT)
        self._order = itertools.count()
        self._counts: dict[str, int] = {}

    def record(
        self, pod: Mapping[str, Any], reason: str, message: str, *, container: str | None = None, warning: bool = False
    ) -> None:
        """Queue one Event. It is dropped if the queue is full, because Events are best effort."""
        metadata = pod["metadata"]
        involved = {"apiVersion": "v1", "kind": "Pod", "namespace": metadata["namespace"]}
        involved |= {"name": metadata["name"], "uid": metadata["uid"]}
        if container:
            involved["fieldPath"] = f"spec.containers{{{container}}}"
        stamp = clock.timestamp()
        message = message[:MESSAGE_LIMIT]
        key = "|".join((metadata["uid"], container or "", reason, message))
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": metadata["namespace"], "name": _name(metadata["name"], key, stamp)},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": "Warning" if warning else "Normal",
            "source": {"component": "kubelet", "host": self._node},
            "reportingComponent": "kubelet",
            "reportingInstance": self._node,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        if not self._queue.full():
            # The running number keeps the order of equal Events, and the queue from comparing dicts.
            self._queue.put_nowait((not warning, next(self._order), key, event))

    async def run(self) -> None:
        names: dict[str, str] = {}
        while True:
            _, _, key, event = await self._queue.get()
            try:
                await self._send(names, key, event)
            except StatusError as error:
                log.debug("event %s: %s", event["reason"], error)

    async def _send(self, names: dict[str, str], key: str, event: dict[str, Any]) -> None:
        base = f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
        if key in names:
            self._counts[key] += 1
            counted = {"count": self._counts[key], "lastTimestamp": event["lastTimestamp"]}
            await self._client.patch(f"{base}/{names[key]}", counted)
            return
        await self._client.post(base, event)
        # Forgetting the names only restarts the counts.
        if len(names) > QUEUE_LIMIT:
            names.clear()
        names[key] = event["metadata"]["name"]
        self._counts[key] = 1


def _name(pod: str, key: str, stamp: str) -> str:
    # Cut, so that the name has at most 253 characters.
    return f"{pod[:200]}.{hashlib.sha256(f'{key}|{stamp}'.encode()).hexdigest()[:16]}"

"""Writes the status of one pod.

Changes are coalesced, failed writes are repeated, and concurrent changes by other clients are never overwritten.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from devcluster.errors import StatusError
from devcluster.node.kube.client import KubeClient, retry_delay

log = logging.getLogger(__name__)


class StatusWriter:
    """Writes the rendered status whenever `touch` was called."""

    def __init__(
        self,
        client: KubeClient,
        pod: Mapping[str, Any],
        render: Callable[[], dict[str, Any]],
        adopt: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._client = client
        metadata = pod["metadata"]
        self._uid = metadata["uid"]
        self._path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        self._render = render
        self._adopt = adopt
        self._version = metadata["resourceVersion"]
        self._dirty = asyncio.Event()
        self._clean = asyncio.Event()
        self._clean.set()
        self._written: dict[str, Any] | None = None
        self.gone = asyncio.Event()
        """Set once the object is gone, or another pod has its name."""

    def seen(self, pod: Mapping[str, Any]) -> None:
        self._version = pod["metadata"]["resourceVersion"]

    def touch(self) -> None:
        self._clean.clear()
        self._dirty.set()

    async def flush(self) -> None:
        """Return once the API has the current status, or has no such pod."""
        self.touch()
        await self._clean.wait()

    async def run(self) -> None:
        failures = 0
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await self._write()
                failures = 0
            except StatusError as error:
                log.info("status of %s: %s", self._path, error)
                failures += 1
                self._dirty.set()
                await asyncio.sleep(retry_delay(failures))
            # `touch` may have been called during the write.
            if not self._dirty.is_set():
                self._clean.set()

    async def _write(self) -> None:
        status = self._render()
        if self.gone.is_set() or status == self._written:
            return
        # The version makes the write fail if another client has changed the pod, such as by adding a condition.
        metadata = {"uid": self._uid, "resourceVersion": self._version}
        try:
            stored = await self._client.patch(f"{self._path}/status", {"metadata": metadata, "status": status})
        except StatusError as error:
            if error.code == 404:
                self.gone.set()
                return
            if error.code == 409:
                await self._catch_up()
                self._dirty.set()
                return
            raise
        self._version = stored["metadata"]["resourceVersion"]
        self._written = status
        self._adopt(stored)

    async def _catch_up(self) -> None:
        try:
            fresh = await self._client.get(self._path)
        except StatusError as error:
            if error.code != 404:
                raise
            self.gone.set()
            return
        # The pod was replaced by another one of the same name.
        if fresh["metadata"]["uid"] != self._uid:
            self.gone.set()
            return
        self._version = fresh["metadata"]["resourceVersion"]
        # The other client may have changed the status too, so it is written again.
        self._written = None
        self._adopt(fresh)

    async def remove(self) -> None:
        """Delete the object of a terminating pod with grace period 0, after its processes have ended."""
        # The uid protects a new pod of the same name.
        precondition = {"uid": self._uid}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": precondition}
        failures = 0
        while not self.gone.is_set():
            try:
                await self._client.delete(self._path, body)
            except StatusError as error:
                # 409: another pod has the name now.
                if error.code in (404, 409):
                    return
                log.info("removal of %s: %s", self._path, error)
                failures += 1
                await asyncio.sleep(retry_delay(failures))
            else:
                return

"""A copy of a list that a watch keeps current.

list ─▶ replace ─▶ watch ─▶ added, modified, deleted ─▶ (410 or gap) ─▶ list
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from typing import Any

from devcluster.errors import StatusError
from devcluster.node.kube.client import KubeClient, retry_delay

log = logging.getLogger(__name__)

WATCH_PAUSE = 0.2  # seconds between the end of a watch and the next one


class Informer:
    """Keeps a copy of one list. Calls `on_change` with the uid and the object after each change; None means deleted."""

    def __init__(
        self,
        client: KubeClient,
        path: str,
        on_change: Callable[[str, dict[str, Any] | None], None],
        **params: str,
    ) -> None:
        self._client = client
        self._path = path
        self._params = params
        self._on_change = on_change
        self._failures = 0
        self.objects: dict[str, dict[str, Any]] = {}
        self.synced = asyncio.Event()

    async def run(self) -> None:
        while True:
            try:
                await self._list_and_watch()
            except StatusError as error:
                log.info("%s: %s", self._path, error)
                # The next list is the remedy, so there is nothing to wait for.
                if error.code == 410:
                    continue
            await asyncio.sleep(self._pause())

    def _pause(self) -> float:
        self._failures += 1
        # Jitter, so that many nodes do not retry at the same time.
        return retry_delay(self._failures) * random.uniform(0.5, 1.0)  # noqa: S311

    async def _list_and_watch(self) -> None:
        items, version = await self._client.list_all(self._path, **self._params)
        self._replace(items)
        self.synced.set()
        while True:
            version = await self._watch_from(version)
            # Prevents a busy loop if the server ends each watch at once.
            await asyncio.sleep(WATCH_PAUSE)

    async def _watch_from(self, version: str) -> str:
        events = self._client.watch(self._path, version, **self._params)
        async with contextlib.aclosing(events) as stream:
            async for event in stream:
                self._failures = 0
                found = event["object"]
                version = found["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._apply(found, deleted=event["type"] == "DELETED")
        return version

    def _replace(self, items: list[dict[str, Any]]) -> None:
        fresh = {item["metadata"]["uid"]: item for item in items}
        for uid in self.objects.keys() - fresh.keys():
            del self.objects[uid]
            self._on_change(uid, None)
        for item in items:
            self._apply(item, deleted=False)

    def _apply(self, found: dict[str, Any], *, deleted: bool) -> None:
        uid = found["metadata"]["uid"]
        if deleted:
            if self.objects.pop(uid, None) is not None:
                self._on_change(uid, None)
            return
        known = self.objects.get(uid)
        # A new list repeats the objects that have not changed.
        if known and known["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]:
            return
        self.objects[uid] = found
        self._on_change(uid, found)

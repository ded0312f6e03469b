"""Updates the hosts files of the pods on this node when Services and pods change."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from devcluster.formats.objects import is_ready, is_terminal
from devcluster.node.context import PodContext
from devcluster.node.kube.client import KubeClient
from devcluster.node.kube.informer import Informer
from devcluster.node.network.hosts import ServiceNames, body_for, header_for, service_names

# Seconds in which changes are collected before the files are written.
PAUSE = 0.05


class HostsFileWriter:
    """Watches all Services and pods of the cluster. `local` returns the pods whose files it writes."""

    def __init__(self, client: KubeClient, local: Callable[[], list[PodContext]]) -> None:
        self._local = local
        self._dirty = asyncio.Event()
        self._pods: dict[str, tuple[Any, ...]] = {}
        self._pod_informer = Informer(client, "/api/v1/pods", self._pod_changed)
        self._service_informer = Informer(client, "/api/v1/services", lambda *_: self._dirty.set())
        self._written: dict[str, str] = {}
        self._names: ServiceNames = {}

    def touch(self) -> None:
        self._dirty.set()

    def text_for(self, context: PodContext) -> str:
        return header_for(context.pod, context.ip) + body_for(context.namespace, self._names)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pod_informer.run())
            group.create_task(self._service_informer.run())
            group.create_task(self._write_when_dirty())

    def _pod_changed(self, uid: str, pod: dict[str, Any] | None) -> None:
        """Cause a rewrite if the change affects a name. Most changes of pods do not."""
        seen = _what_names_depend_on(pod) if pod else ()
        if self._pods.get(uid, ()) != seen:
            self._pods[uid] = seen
            self._dirty.set()
        if pod is None:
            self._pods.pop(uid, None)

    async def _write_when_dirty(self) -> None:
        await self._service_informer.synced.wait()
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            begun = time.monotonic()
            self._write_all()
            # In a large cluster a rewrite takes long; then the files are written less often than names change.
            await asyncio.sleep(PAUSE + 5 * (time.monotonic() - begun))

    def _write_all(self) -> None:
        names = self._names = service_names(
            self._service_informer.objects.values(), self._pod_informer.objects.values()
        )
        bodies: dict[str, str] = {}
        local = self._local()
        for context in local:
            if context.namespace not in bodies:
                bodies[context.namespace] = body_for(context.namespace, names)
            text = header_for(context.pod, context.ip) + bodies[context.namespace]
            # The worker of a pod writes the first version, when it creates the directory.
            if self._written.get(context.uid) != text and context.hosts_file.exists():
                _write_in_place(context.hosts_file, text)
                self._written[context.uid] = text
        for uid in self._written.keys() - {context.uid for context in local}:
            del self._written[uid]


def _what_names_depend_on(pod: Mapping[str, Any]) -> tuple[Any, ...]:
    metadata, status = pod["metadata"], pod.get("status") or {}
    labels = tuple(sorted((metadata.get("labels") or {}).items()))
    return status.get("podIP"), is_terminal(pod), is_ready(pod), bool(metadata.get("deletionTimestamp")), labels


def _write_in_place(path: Path, text: str) -> None:
    """Overwrite the file in place, since a bind mount follows the inode, and truncate it afterwards."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        data = text.encode()
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)

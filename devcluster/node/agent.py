"""The node agent: registers the node, renews its Lease, and runs a worker for each pod that is bound to it.

pods of this node ──list+watch──▶ PodWorker ──▶ containers ──▶ processes
Lease, Node status ◀── heartbeats          HTTPS ◀── kubectl logs, through the API server
"""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web

from devcluster import clock
from devcluster.certificates import Certificates
from devcluster.errors import StatusError
from devcluster.formats.objects import is_terminal
from devcluster.node.containers.images import Image, load_images
from devcluster.node.context import HOST_IP, NodeRuntime
from devcluster.node.kube.client import KubeClient, load_kubeconfig
from devcluster.node.kube.configuration import ObjectCache
from devcluster.node.kube.events import EventRecorder
from devcluster.node.kube.informer import Informer
from devcluster.node.log_server import KubeletServer
from devcluster.node.network.addresses import AddressBlock
from devcluster.node.network.hosts_files import HostsFileWriter
from devcluster.node.pods.admission import Ledger, rejection, sum_of
from devcluster.node.pods.player import PlayerFor, no_player
from devcluster.node.pods.worker import PodWorker
from devcluster.node.processes.leftovers import kill_leftovers
from devcluster.node.processes.mount_namespaces import namespaces_work
from devcluster.node.registration import LEASES, capacity, lease_object, node_object, node_status
from devcluster.node.settings import NodeSettings
from devcluster.node.storage.csi import CsiMounts, csi_mounts

log = logging.getLogger(__name__)

# Seconds until a failed registration, renewal or report is repeated.
RETRY = 1.0


class NodeAgent:
    """Runs one node until `run` is cancelled, and kills all its processes then."""

    def __init__(self, kubeconfig: Path, name: str, settings: NodeSettings, player_for: PlayerFor = no_player) -> None:
        self._player_for = player_for
        self._kubeconfig = kubeconfig
        self._name = name
        self._settings = settings
        self._workers: dict[str, PodWorker] = {}
        self._ledger = Ledger()
        self._node: dict[str, Any] = {}
        self._port = 0
        self._since = clock.now()
        self.ready = asyncio.Event()
        """Set once the node is registered and its first heartbeats are written."""

    async def run(self) -> None:
        self._settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Processes of a former agent would run beside the new instances of their containers.
        killed = kill_leftovers(self._settings.data_dir)
        if killed:
            log.info("killed %d processes that a former agent left running", len(killed))
        # A malformed images file must fail the start, not each pod.
        load_images(self._settings.images_file)
        addresses = AddressBlock(self._name, routed=self._settings.routed_addresses)
        if self._settings.pods > addresses.size:
            log.warning("the node accepts %d pods, because it has as many addresses for them", addresses.size)
            self._settings = replace(self._settings, pods=addresses.size)
        try:
            async with (
                # The log server starts before the registration, since the status of the node contains its port.
                KubeClient(load_kubeconfig(self._kubeconfig)) as client,
                self._serve_logs(),
                csi_mounts(client, self._settings) as csi,
            ):
                await self._work(client, addresses, csi)
        finally:
            addresses.close()

    async def _work(self, client: KubeClient, addresses: AddressBlock, csi: CsiMounts) -> None:
        hosts = HostsFileWriter(client, lambda: [worker.context for worker in self._workers.values()])
        runtime = await self._runtime(client, addresses, hosts, csi)
        pods = f"spec.nodeName={self._name}"
        async with asyncio.TaskGroup() as group:

            def changed(uid: str, pod: dict[str, Any] | None) -> None:
                self._pod_changed(group, runtime, hosts, uid, pod)

            informer = Informer(client, "/api/v1/pods", changed, fieldSelector=pods)
            group.create_task(runtime.events.run())
            group.create_task(hosts.run())
            group.create_task(self._register_and_beat(client))
            group.create_task(informer.run())
            group.create_task(self._delete_old_state(informer))

    async def _runtime(
        self, client: KubeClient, addresses: AddressBlock, hosts: HostsFileWriter, csi: CsiMounts
    ) -> NodeRuntime:
        wanted = self._settings.namespaces
        works = wanted is not False and await namespaces_work(self._settings.data_dir)
        if wanted and not works:
            raise RuntimeError("namespaces=True, but this system does not allow unprivileged mount namespaces")
        return NodeRuntime(
            name=self._name,
            client=client,
            settings=self._settings,
            objects=ObjectCache(client),
            events=EventRecorder(client, self._name),
            csi=csi,
            images=self._images,
            namespaces=works,
            allocatable=capacity(self._settings),
            address=addresses.acquire,
            release=lambda uid: self._release(addresses, uid),
            hosts=hosts.text_for,
            reject=self._reject,
        )

    def _release(self, addresses: AddressBlock, uid: str) -> None:
        addresses.release(uid)
        self._ledger.free(uid)

    def _reject(self, pod: Mapping[str, Any]) -> tuple[str, str] | None:
        uid, room = pod["metadata"]["uid"], capacity(self._settings)
        # The ledger still has pods whose end is not reported yet. Only if it leaves no room, each pod is looked at.
        if rejection(pod, self._ledger.without(uid), room) is None:
            return None
        everyone = (worker.current() for worker in self._workers.values())
        others = (p for p in everyone if p["metadata"]["uid"] != uid and not is_terminal(p))
        return rejection(pod, sum_of(others), room)

    def _images(self) -> tuple[Image, ...]:
        """Read the images file at each call, so that a waiting pod finds a new entry."""
        try:
            return load_images(self._settings.images_file)
        except (OSError, ValueError) as error:
            log.warning("images file: %s", error)
            return load_images(None)

    def _pod_changed(
        self,
        group: asyncio.TaskGroup,
        runtime: NodeRuntime,
        hosts: HostsFileWriter,
        uid: str,
        pod: dict[str, Any] | None,
    ) -> None:
        if worker := self._workers.get(uid):
            worker.observe(pod)
        elif pod is not None:
            worker = self._workers[uid] = PodWorker(runtime, pod, self._player_for)
            # Before a worker runs: a pod that a former agent has admitted has its place.
            if not is_terminal(pod):
                self._ledger.charge(pod)
            hosts.touch()
            group.create_task(self._supervise(uid, worker))

    async def _supervise(self, uid: str, worker: PodWorker) -> None:
        """Run the worker of one pod. Log its error, so that the other pods of the node continue."""
        try:
            await worker.run()
        except Exception:
            log.exception("pod %s", uid)
        finally:
            self._workers.pop(uid, None)

    async def _register_and_beat(self, client: KubeClient) -> None:
        await self._retry(lambda: self._register(client))
        self.ready.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._every(self._settings.lease_interval, lambda: self._renew(client)))
            group.create_task(self._every(self._settings.status_interval, lambda: self._report(client)))

    async def _register(self, client: KubeClient) -> None:
        try:
            self._node = await client.post("/api/v1/nodes", node_object(self._name, self._settings))
        except StatusError as error:
            # 409: the Node object of an earlier run exists. Its status follows with the first report.
            if error.code != 409:
                raise
            labels = node_object(self._name, self._settings)["metadata"]["labels"]
            self._node = await client.patch(f"/api/v1/nodes/{self._name}", {"metadata": {"labels": labels}})
        await self._renew(client)
        await self._report(client)

    async def _renew(self, client: KubeClient) -> None:
        lease = lease_object(self._name, self._node, self._settings.lease_interval, clock.now())
        try:
            await client.patch(f"{LEASES}/{self._name}", {"metadata": {}, "spec": lease["spec"]})
        except StatusError as error:
            if error.code != 404:
                raise
            await client.post(LEASES, lease)

    async def _report(self, client: KubeClient) -> None:
        status = node_status(self._name, self._settings, self._port, self._since, clock.now())
        try:
            await client.patch(f"/api/v1/nodes/{self._name}/status", {"status": status})
        except StatusError as error:
            if error.code != 404:
                raise
            # The Node object was deleted while its agent runs.
            self._node = await client.post("/api/v1/nodes", node_object(self._name, self._settings))

    async def _every(self, seconds: float, action: Callable[[], Awaitable[None]]) -> None:
        while True:
            # The registration has just done this for the first time.
            await asyncio.sleep(seconds)
            await self._retry(action)

    async def _retry(self, action: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await action()
            except StatusError as error:
                log.info("node %s: %s", self._name, error)
                await asyncio.sleep(RETRY)
            else:
                return

    @contextlib.asynccontextmanager
    async def _serve_logs(self) -> AsyncIterator[None]:
        # A client that follows a log would otherwise delay the end of the node.
        runner = web.AppRunner(KubeletServer(self).application(), access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        certificates = Certificates(self._settings.data_dir / "pki", HOST_IP)
        certificates.renew(clock.now())
        site = web.TCPSite(runner, HOST_IP, 0, ssl_context=certificates.server_context())
        await site.start()
        self._port = runner.addresses[0][1]
        try:
            yield
        finally:
            await runner.cleanup()

    async def _delete_old_state(self, informer: Informer) -> None:
        """Delete the logs and the volumes of pods whose objects are gone."""
        # Before the first list, every pod would seem to be gone.
        await informer.synced.wait()
        while True:
            for folder in (self._settings.data_dir / "logs", self._settings.data_dir / "pods"):
                for entry in folder.iterdir() if folder.is_dir() else ():
                    if entry.name not in informer.objects and entry.name not in self._workers:
                        shutil.rmtree(entry, ignore_errors=True)
            await asyncio.sleep(self._settings.status_interval)

    def find(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        # The newest pod first: an older pod of the same name may still be terminating.
        for worker in reversed(list(self._workers.values())):
            metadata = worker.context.pod["metadata"]
            if metadata["name"] == name and metadata["namespace"] == namespace:
                return worker.current()
        return None

    def log_file(self, uid: str, container: str, restart: int) -> Path:
        return self._settings.data_dir / "logs" / uid / container / f"{restart}.log"

"""Runs the embedded cluster in one coroutine: API server, controllers and nodes."""

import asyncio
import logging
import secrets
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import yaml
from aiohttp import web

from devcluster import clock
from devcluster.certificates import Certificates
from devcluster.controllers.events import EventExpiry
from devcluster.controllers.garbage import GarbageCollector, OrphanPods
from devcluster.controllers.kueue.controller import KueueController
from devcluster.controllers.kueue.pods import GatedPodController
from devcluster.controllers.namespaces import NamespaceController
from devcluster.controllers.nodes import NodeLifecycle
from devcluster.controllers.quotas import QuotaController
from devcluster.controllers.scheduler import Scheduler
from devcluster.controllers.statefulsets import StatefulSetController
from devcluster.controllers.volumes import VolumeController
from devcluster.host import write_private
from devcluster.registry.admission import Admission
from devcluster.registry.operations import Registry
from devcluster.registry.store import ObjectStore
from devcluster.resources import Catalog
from devcluster.server.api import ApiServer, ApiSettings
from devcluster.server.lists import Lister
from devcluster.settings import DevClusterSettings
from devcluster.testing.faults import FaultInjection

_logger = logging.getLogger(__name__)
# Keeps a controller that always fails from taking all CPU time.
_RESTART_SECONDS = 1.0
_CERTIFICATE_CHECK_SECONDS = 3600.0
"""Much shorter than the time that a certificate has left when it is renewed."""


class _Loop(Protocol):
    async def run(self) -> None: ...


async def run(settings: DevClusterSettings, stop: asyncio.Event, *, ready: asyncio.Event | None = None) -> None:
    """Serve until `stop` is set. Prints `KUBECONFIG=<path>` and sets `ready` once the API server answers."""
    with _home(settings.data_dir) as home:
        store = _open_store(settings)
        try:
            registry = Registry(store, Admission(store, settings.timings.eviction_toleration))
            token = settings.token or _kept_token(home)
            lister = Lister(store)
            api_settings = ApiSettings(token, settings.timings.bookmark)
            kueue_runs = asyncio.Event()
            kueue_runs.set()
            api = ApiServer(registry, lister, api_settings, FaultInjection(store, lister, kueue_runs))
            timeout = settings.timings.shutdown
            # With handler_cancellation, a client that disconnects ends its watch at once.
            runner = web.AppRunner(
                api.application(), access_log=None, shutdown_timeout=timeout, handler_cancellation=True
            )
            await runner.setup()
            try:
                await _serve(settings, runner, _Cluster(home, registry, token, kueue_runs), stop, ready)
            finally:
                await runner.cleanup()
        finally:
            # After the runner: its handlers use the store until they end.
            store.close()


@contextmanager
def _home(data_dir: Path | None) -> Iterator[Path]:
    """Yield the data directory. A cluster in memory gets a temporary one."""
    if data_dir is not None:
        yield data_dir.absolute()
        return
    with TemporaryDirectory(prefix="devcluster-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The parts of a cluster that `_serve` needs."""

    home: Path
    registry: Registry
    token: str
    kueue_runs: asyncio.Event


async def _serve(
    settings: DevClusterSettings,
    runner: web.AppRunner,
    cluster: _Cluster,
    stop: asyncio.Event,
    ready: asyncio.Event | None,
) -> None:
    certificates = Certificates(cluster.home / "pki", settings.host)
    certificates.renew(clock.now())
    tls = certificates.server_context()
    site = web.TCPSite(runner, settings.host, settings.port, ssl_context=tls)
    path = settings.kubeconfig or cluster.home / "kubeconfig"

    def publish() -> Path:
        server = f"https://{_url_host(settings.host)}:{runner.addresses[0][1]}"
        return _write_kubeconfig(path, server, cluster.token, certificates.authority_pem())

    def publish_renewed() -> None:
        certificates.load_into(tls)
        publish()

    async with asyncio.TaskGroup() as group:
        loops = [
            *_controllers(settings, cluster.registry, cluster.kueue_runs),
            _CertificateRenewal(certificates, publish_renewed),
        ]
        tasks = [group.create_task(_keep_running(loop)) for loop in loops]
        await site.start()
        # The port is known only once the server listens.
        kubeconfig = publish()
        # Nodes connect through the kubeconfig, so they start after the server.
        tasks += [group.create_task(node.run()) for node in _nodes(settings, cluster.home, kubeconfig)]
        print(f"KUBECONFIG={kubeconfig}", flush=True)  # noqa: T201  the line that callers wait for
        if ready is not None:
            ready.set()
        await stop.wait()
        for task in tasks:
            task.cancel()


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _CertificateRenewal:
    """Renews certificates while the cluster runs, and calls `renewed` after each replacement."""

    def __init__(self, certificates: Certificates, renewed: Callable[[], object]) -> None:
        self._certificates = certificates
        self._renewed = renewed

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_CERTIFICATE_CHECK_SECONDS)
            if self._certificates.renew(clock.now()):
                self._renewed()


async def _keep_running(loop: _Loop) -> None:
    """Restart a controller that fails: an object that one controller cannot process must not end the cluster."""
    while True:
        try:
            await loop.run()
        except Exception:
            _logger.exception("%s failed; restarting it", type(loop).__name__)
            await asyncio.sleep(_RESTART_SECONDS)


def _open_store(settings: DevClusterSettings) -> ObjectStore:
    path = settings.data_dir / "cluster.sqlite3" if settings.data_dir else None
    return ObjectStore(Catalog(pod_groups=settings.pod_groups), path, settings.watch_window)


def _controllers(settings: DevClusterSettings, registry: Registry, kueue_runs: asyncio.Event) -> list[_Loop]:
    timings = settings.timings
    return [
        Scheduler(registry, settings.scheduler_names),
        GarbageCollector(registry),
        OrphanPods(registry, timings.orphan_pod_grace),
        NamespaceController(registry),
        NodeLifecycle(registry, timings),
        QuotaController(registry),
        VolumeController(registry),
        StatefulSetController(registry),
        KueueController(registry, kueue_runs),
        GatedPodController(registry),
        EventExpiry(registry, timings.event_ttl),
    ]


def _kept_token(home: Path) -> str:
    """Return the token of the data directory. It is generated once, so that kubeconfigs outlive a restart."""
    path = home / "token"
    if not path.exists():
        # Hexadecimal: as an argument, a token that begins with a hyphen would be read as an option.
        write_private(path, secrets.token_hex(24))
    return path.read_text()


def _write_kubeconfig(path: Path, server: str, token: str, authority: bytes) -> Path:
    name = "devcluster"
    cluster = {"server": server, "certificate-authority-data": b64encode(authority).decode()}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path = path.absolute()
    write_private(path, yaml.safe_dump(document, sort_keys=False))
    return path


def _nodes(settings: DevClusterSettings, home: Path, kubeconfig: Path) -> list[_Loop]:
    """Return the node agents. Their modules take time to import, so a cluster without nodes does not import them."""
    if not settings.nodes:
        return []
    from devcluster.node.agent import NodeAgent  # noqa: PLC0415
    from devcluster.node.settings import NodeSettings  # noqa: PLC0415
    from devcluster.testing.script import script_player  # noqa: PLC0415

    return [
        NodeAgent(
            kubeconfig=kubeconfig,
            name=f"node-{number}",
            settings=NodeSettings(
                data_dir=home / f"node-{number}",
                images_file=settings.images or home / "images.yaml",
                cpu=settings.node_cpu,
                memory=settings.node_memory,
                extended_resources=dict(settings.node_resources),
            ),
            player_for=script_player,
        )
        for number in range(1, settings.nodes + 1)
    ]

"""Two tenants whose sample sets are cached on one node: team-a tries to read and to clear what team-b has cached."""

import hashlib
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
import pytest_asyncio

from app.demo.second_node import TOLERATION
from app.running.dev import RUNTIME_IMAGE
from devcluster.node.storage.fuse import mounts_below
from tests.support.cache.juicefs import needs_fuse
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.clusters.nodes import running_node
from tests.support.gateways.process import STEADY, gateway_process
from tests.support.machine.processes import processes_of
from tests.support.waiting import until

VICTIM, ATTACKER = "team-b", "team-a"
BASE = "/ssd/cache"
WITHIN = 240.0
pytestmark = [needs_fuse, pytest.mark.timeout(900)]


class Node(NamedTuple):
    name: str
    home: Path

    @property
    def disk(self) -> Path:
        return self.home / "disk"

    def chunks_of(self, namespace: str) -> dict[str, Path]:
        """Return the cached blocks of a namespace on the node by their digests."""
        found = (path for path in (self.disk / BASE[1:] / namespace).rglob("*") if "chunks" in path.parts)
        return {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in found if path.is_file()}

    def server_of(self, set_name: str) -> int:
        """Return the pid of the runtime server of a set."""
        commands = processes_of(str(self.home)).items()
        (pid,) = [pid for pid, command in commands if "server" in command and f"--dataDir=/mnt/{set_name}" in command]
        return pid


@pytest.fixture
def node(cluster: Cluster, tmp_path: Path) -> Iterator[Node]:
    home = tmp_path / "machine"
    with running_node(cluster, home, "--cordoned", "--host-root", str(home / "disk")) as name:
        yield Node(name, home)
    assert mounts_below(tmp_path) == []


class Tenant:
    """One namespace with a volume in the directory for files."""

    def __init__(self, http: httpx2.AsyncClient, api: KubeClient, namespace: str, node: Node, files: Path) -> None:
        self._http = http
        self._api = api
        self._node = node
        self.home = files / namespace
        self.base = f"/api/v1/namespaces/{namespace}"

    async def prepare(self) -> None:
        (self.home / "bucket").mkdir(parents=True)
        (self.home / "source").mkdir()
        for number in range(3):
            (self.home / "source" / f"{number}").write_bytes(os.urandom(50_000))
        storage = {"storage": "file", "bucket": f"{self.home}/bucket/", "metaurl": f"sqlite3://{self.home}/meta.db"}
        namespace = self.base.rpartition("/")[2]
        (await self._api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})).ok()
        secret = {"metadata": {"name": "volume"}, "stringData": {"name": "volume", **storage}}
        (await self._api.post(f"{self.base}/secrets", secret)).ok()

    async def post(self, resource: str, kind: str, name: str, spec: dict[str, Any]) -> httpx2.Response:
        document = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": kind, "metadata": {"name": name}}
        return await self._http.post(f"{self.base}/{resource}", json={**document, "spec": spec})

    async def post_set(self, name: str, path: str, **spec: Any) -> httpx2.Response:
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [self._node.name]}]}
        whole = {
            "partitions": 1,
            "source": {"uri": f"file://{self.home}/source/"},
            "secretRef": {"name": "volume"},
            "cache": {"levels": [{"mediumType": "SSD", "path": path, "cacheSize": 100}]},
            "tolerations": [TOLERATION],
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}},
        }
        return await self.post("samplesets", "SampleSet", name, whole | spec)

    async def post_job(self, name: str, kind: str, set_name: str, **options: Any) -> httpx2.Response:
        spec = {"type": kind, "sampleSetRef": {"name": set_name}, "secretRef": {"name": "volume"}, **options}
        return await self.post("samplejobs", "SampleJob", name, spec)

    async def is_in_phase(self, resource: str, name: str, *phases: str) -> dict[str, Any]:
        async def read() -> dict[str, Any]:
            view: dict[str, Any] = (await self._http.get(f"{self.base}/{resource}/{name}")).json()
            return view

        view: dict[str, Any] = await until(
            read, lambda found: found["status"]["phase"] in phases, what=name, within=WITHIN
        )
        return view

    async def delete(self, name: str) -> None:
        await until(
            lambda: self._http.delete(f"{self.base}/samplesets/{name}"),
            lambda answer: answer.json().get("status", {}).get("removal") == "gone",
            what=f"{name} is gone",
            within=WITHIN,
        )


class Tenants(NamedTuple):
    victim: Tenant
    attacker: Tenant


@pytest_asyncio.fixture
async def tenants(node: Node, cluster: Cluster, database_url: str, tmp_path: Path) -> AsyncIterator[Tenants]:
    files = tmp_path / "files"
    settings = {**STEADY, "JOBGATE_RUNTIME_IMAGE": RUNTIME_IMAGE, "JOBGATE_CACHE_ROOTS": "/ssd"}
    limits = {"JOBGATE_FILE_DIRECTORIES": str(files), "JOBGATE_SOURCE_HOSTS": ""}
    async with (
        connect(cluster) as api,
        gateway_process(database_url, cluster.kubeconfig, tmp_path / "gateway", **settings, **limits) as gateway,
        httpx2.AsyncClient(base_url=await gateway.start(), timeout=60) as http,
    ):
        found = Tenants(*(Tenant(http, api, space, node, files) for space in (VICTIM, ATTACKER)))
        for tenant in found:
            await tenant.prepare()
        yield found
        assert await gateway.stop() == 0


def sources(directory: str, node: Node) -> list[str]:
    """Return every path by which a sync could try to read a cache directory of the node."""
    parts = Path(directory).parts[1:]
    on_node = ["/" + "/".join(parts[:count]) for count in range(len(parts) + 1)]
    in_container = [
        "/cache",
        "/cache/ssd-cache",
        f"/cache/ssd-cache/{VICTIM}",
        f"/mnt/{VICTIM}",
        "/mnt",
        "/proc/1/root",
    ]
    return [f"file://{path}/" for path in (*on_node, *in_container, str(node.disk), f"{node.disk}{directory}")]


def readable_in(root: Path) -> Iterator[bytes]:
    """Return the content of every file in the directories that a server mounts."""
    for top, _, names in itertools.chain.from_iterable(os.walk(root / place) for place in ("cache", "mnt")):
        for name in names:
            # Reads of JuiceFS' own files, such as .accesslog, wait for what it logs.
            if not name.startswith("."):
                yield Path(top, name).read_bytes()


async def test_a_tenant_reaches_nothing_of_another_tenants_cache(tenants: Tenants, node: Node) -> None:
    victim, attacker = tenants
    assert (await victim.post_set("secret", BASE)).status_code == 201
    view = await victim.is_in_phase("samplesets", "secret", "Ready")
    assert (await victim.post_job("warm", "warmup", "secret")).status_code == 201
    await victim.is_in_phase("samplejobs", "warm", "Succeeded")
    chunks = node.chunks_of(VICTIM)
    assert chunks
    directory = f"{BASE}/{VICTIM}/{view['uid']}"
    assert all(path.is_relative_to(node.disk / directory[1:]) for path in chunks.values())

    # The directory of another set is refused, and the base of its cache gives the attacker's set one of its own.
    for path in (directory, f"{directory}/raw", "/ssd/../ssd", "/"):
        assert (await attacker.post_set("hostile", path)).status_code == 422, path
    assert (await attacker.post_set("hostile", BASE)).status_code == 201
    await attacker.is_in_phase("samplesets", "hostile", "Ready")
    assert chunks.keys().isdisjoint(node.chunks_of(ATTACKER))

    # No source leads there.
    for number, source in enumerate(sources(directory, node)):
        answer = await attacker.post_job(f"steal-{number}", "sync", "hostile", syncOptions={"source": source})
        assert (answer.status_code, source) == (422, source)
        assert "SourceNotAllowed" in answer.text, answer.text

    # The server of the attacker's set mounts none of it.
    root = Path(f"/proc/{node.server_of('hostile')}/root")
    assert [entry.name for entry in (root / "cache").iterdir()] == ["ssd-cache"]
    found = {hashlib.sha256(content).hexdigest() for content in readable_in(root)}
    assert found
    assert chunks.keys().isdisjoint(found)

    # Neither clearing nor removing the attacker's set changes it.
    for number, path in enumerate((directory, BASE, f"/cache/ssd-cache/{VICTIM}")):
        assert (
            await attacker.post_job(f"clear-{number}", "clear", "hostile", clearOptions={"paths": [path]})
        ).is_success
        await attacker.is_in_phase("samplejobs", f"clear-{number}", "Succeeded", "Failed")
    await attacker.delete("hostile")
    assert node.chunks_of(VICTIM).keys() == chunks.keys()
    assert node.chunks_of(ATTACKER) == {}
    await victim.delete("secret")

"""A stage for SampleSets: an API server without nodes, a kubelet run by hand, simulated runtime servers.

rows in Postgres ──▶ reconciler ──▶ embedded API server (volumes, StatefulSets, deletion are real)
                       └──────▶ Servers: the protocol, without a program behind it
"""

import asyncio
import base64
import json
import random
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self
from uuid import UUID, uuid4

from app.db.installation import leases
from app.db.objects import resources
from app.db.objects.resources import StoredRow
from app.db.postgres.engine import Database
from app.db.samples.rows import SampleRow, sample_events, storage_of
from app.domain.access.actors import Actor
from app.domain.access.credentials import runtime_token_of
from app.domain.cache.limits import CacheLimits
from app.domain.cache.values import CacheSite
from app.domain.kinds.sample_kind import SampleKind
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.kinds.samples.specs.mount_options import parse_mount_options
from app.domain.kinds.samples.specs.sample_set import API_VERSION
from app.k8s.api import KubeApi, PodRequest
from app.k8s.connection import connect as connect_api
from app.loops.cache.reconciler import SampleReconciler
from app.loops.cache.runtime_servers import NoAnswer, Reply, RuntimeServers
from app.loops.controller_settings import ControllerSettings, SampleSettings
from app.loops.workqueue import WorkQueue
from app.services.editing.samples import SampleEditor
from app.services.submitting.objects import SubmitRequest
from app.services.submitting.samples import SampleSubmitter
from tests.loops.harness import SkippingClock
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.waiting import until

KEY = b"k" * 32
# Nobody speaks for the nodes that a test makes, and they are not lost for that.
QUIET_CLUSTER = ("--nodes", "0", "--node-monitor-grace", "3600")
IMAGE = "registry.example/jobgate:1"
WITHIN = 60.0
SECRET = {"name": "vol", "storage": "s3", "metaurl": "redis://meta/1", "bucket": "https://b.example.com"}
KEYS = {"access-key": "AKI", "secret-key": "s3cr3t-key"}


@dataclass
class Servers:
    """The simulated server of each pod: its options, its answers and its cache."""

    token: str = ""
    options: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=dict)
    results: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    uploads: list[tuple[str, str, str]] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    refusing: dict[str, int] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=lambda: {"status": "success", "message": ""})
    cached: int = 100
    total: int = 100

    async def send(self, request: PodRequest, seconds: float) -> Reply:
        assert seconds > 0
        pod, path = request.pod, request.path
        if pod in self.silent:
            raise NoAnswer(f"{pod} is silent")
        if request.headers.get("X-Jobgate-Token") != self.token:
            return Reply(401, b"the set's token is needed\n")
        if request.method == "POST":
            return self._upload(pod, path, request)
        folder, name = path.split("/")
        if folder == "cacheStatus":
            figures = {"totalSize": str(self.total), "totalFiles": "3", "cachedSize": str(self.cached)}
            return Reply(200, json.dumps(figures).encode())
        kind = folder.removesuffix("Options").removesuffix("Result")
        has = self.options.get((pod, kind), {})
        if name not in has:
            return Reply(404, b"there is no such file\n")
        if folder.endswith("Options"):
            return Reply(200, has[name])
        result = self.results.get((pod, name), self.outcome)
        return Reply(200, json.dumps(result).encode()) if result else Reply(404, b"not begun\n")

    def _upload(self, pod: str, path: str, request: PodRequest) -> Reply:
        name = request.headers["filename"]
        if status := self.refusing.get(path):
            return Reply(status, b"not now\n")
        self.uploads.append((pod, path, name))
        if request.params.get("terminate"):
            return Reply(200, b"")
        kind = path.removeprefix("upload/").removesuffix("Options")
        self.options.setdefault((pod, kind), {})[name] = request.body or b""
        return Reply(200, b"")

    def posted(self, kind: str) -> list[str]:
        """Return the pods that received a job of this type, in order."""
        return [pod for pod, path, _ in self.uploads if path == f"upload/{kind}Options" and self._has(pod, kind)]

    def _has(self, pod: str, kind: str) -> bool:
        return (pod, kind) in self.options

    def lose(self, pod: str) -> None:
        """Lose the options of a server, as a restarted container does."""
        for key in [key for key in self.options if key[0] == pod]:
            del self.options[key]

    async def close(self) -> None:
        pass


@dataclass
class Stage:
    db: Database
    lease: leases.Lease
    api: KubeApi
    kube: KubeClient
    namespace: str
    servers: Servers
    sets: SampleReconciler
    queue: WorkQueue
    clock: SkippingClock
    submitter: Callable[[SampleKind], SampleSubmitter]
    editor: Callable[[SampleKind], SampleEditor]
    nodes: list[str] = field(default_factory=list)
    installation: UUID = field(default_factory=uuid4)

    @property
    def base(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    async def secret(self, name: str = "storage", **data: str) -> None:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in {**SECRET, **data}.items()}
        document = {"metadata": {"name": name}, "data": encoded}
        if (await self.kube.post(f"{self.base}/secrets", document)).status == 409:
            (await self.kube.patch(f"{self.base}/secrets/{name}", document)).ok()

    async def a_set(self, name: str = "imagenet", **spec: Any) -> UUID:
        whole = {"partitions": 1, "source": {"uri": "s3://b.example.com/train"}, "secretRef": {"name": "storage"}}
        uid = await self._submit(SAMPLE_SET, name, {**whole, **spec})
        self.servers.token = runtime_token_of(KEY, str(uid))
        return uid

    async def a_job(self, name: str, kind: str, **spec: Any) -> UUID:
        return await self._submit(SAMPLE_JOB, name, {"type": kind, "sampleSetRef": {"name": "imagenet"}, **spec})

    def request(self) -> SubmitRequest:
        return SubmitRequest(namespace=self.namespace, actor=Actor("alice"))

    async def _submit(self, kind: SampleKind, name: str, spec: Mapping[str, Any]) -> UUID:
        document = {"apiVersion": API_VERSION, "kind": kind.name, "metadata": {"name": name}, "spec": spec}
        created = await self.submitter(kind).submit(document, self.request(), key=None, render=lambda _: b"{}")
        return created.uid

    async def edit(self, name: str, spec: Mapping[str, Any], kind: SampleKind = SAMPLE_SET) -> None:
        await self.editor(kind).merge(
            self.namespace, name, {"spec": dict(spec)}, actor=Actor("alice"), precondition=_any
        )

    async def delete(self, name: str = "imagenet", kind: SampleKind = SAMPLE_SET) -> None:
        await self.editor(kind).delete(self.namespace, name, actor=Actor("alice"), precondition=_any)

    async def row(self, uid: UUID) -> SampleRow:
        for kind in (SAMPLE_SET, SAMPLE_JOB):
            found = await resources.get(self.db, storage_of(kind), uid)
            if found is not None:
                return found
        raise LookupError(uid)

    async def reasons(self, uid: UUID) -> list[str]:
        return [event.reason for event in await sample_events(self.db, uid, limit=100)]

    async def reconcile(self, uid: UUID) -> SampleRow:
        await self.sets._reconcile_once(str(uid))
        return await self.row(uid)

    async def until(self, uid: UUID, wanted: Callable[[SampleRow], object], *, kubelet: bool = True) -> SampleRow:
        """Reconcile again and again until the row fulfils the condition."""

        async def reconciled() -> SampleRow:
            if kubelet:
                await self.run_pods()
            return await self.reconcile(uid)

        row = await self.row(uid)
        if wanted(row):
            return row
        return await until(reconciled, wanted, what="the row is as wanted", within=WITHIN, every=0.02)

    async def ready(self, name: str = "imagenet", **spec: Any) -> UUID:
        await self.secret()
        uid = await self.a_set(name, **spec)
        await self.until(uid, lambda row: row.phase == "Ready")
        return uid

    async def node(self) -> str:
        name = f"{self.namespace}-n{len(self.nodes)}"
        # Cordoned: which pod is where is for the test to say.
        (await self.kube.post("/api/v1/nodes", {"metadata": {"name": name}, "spec": {"unschedulable": True}})).ok()
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2126-01-01T00:00:00Z"}
        (await self.kube.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}})).ok()
        self.nodes.append(name)
        return name

    async def run_pods(self) -> None:
        """Act as scheduler and kubelets: run each pod on a node of its own, and finish the deletion of others."""
        pods = (await self.kube.get(f"{self.base}/pods")).ok()["items"]
        for pod in pods:
            await self._run_pod(pod)

    async def _run_pod(self, pod: dict[str, Any]) -> None:
        name, path = pod["metadata"]["name"], f"{self.base}/pods/{pod['metadata']['name']}"
        if pod["metadata"].get("deletionTimestamp"):
            await self.kube.delete(path, {"gracePeriodSeconds": 0})
            return
        status = pod["status"]
        if status.get("phase") == "Running" and {"type": "Ready", "status": "True"}.items() <= _ready(status).items():
            return
        index = int(name.rpartition("-")[2])
        while len(self.nodes) <= index:
            await self.node()
        if not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": self.nodes[index]}
            await self.kube.post(f"{path}/binding", {"metadata": {"name": name}, "target": target})
        conditions = [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}]
        running = {"phase": "Running", "podIP": f"10.0.0.{index + 1}", "conditions": conditions}
        await self.kube.patch(f"{path}/status", {"status": running})

    async def labels(self) -> dict[str, str]:
        """Return the value of the set's label by node."""
        key = f"paddlepaddle.org/juicefs-{self.namespace}.imagenet"
        nodes = (await self.kube.get("/api/v1/nodes", labelSelector=key)).ok()["items"]
        return {node["metadata"]["name"]: node["metadata"]["labels"][key] for node in nodes}

    async def directories(self) -> set[str]:
        """Return the directories of nodes that the set's volume and its servers have."""
        volume = (await self.kube.get(f"/api/v1/persistentvolumes/{self.namespace}.imagenet")).ok()
        options = parse_mount_options(volume["spec"]["csi"]["volumeAttributes"]["mountOptions"])
        runtime = (await self.kube.get(f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets/imagenet-runtime")).ok()
        volumes = runtime["spec"]["template"]["spec"]["volumes"]
        mounted = {each["hostPath"]["path"] for each in volumes if "hostPath" in each}
        return mounted | set((options["cache-dir"] or "").split(":"))

    async def left(self) -> list[str]:
        """Return the objects of this namespace's sets that still exist."""
        found = []
        selector = f"jobgate.dev/sample-set-uid,jobgate.dev/sample-set-namespace={self.namespace}"
        paths = [f"{self.base}/{name}" for name in ("persistentvolumeclaims", "services", "secrets", "pods")]
        for path in (*paths, f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets", "/api/v1/persistentvolumes"):
            answer = await self.kube.get(path, labelSelector=selector)
            found += [item["metadata"]["name"] for item in answer.ok()["items"]]
        return found


def _ready(status: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((found for found in status.get("conditions") or () if found["type"] == "Ready"), {})


def _any(_: StoredRow) -> None:
    """No precondition."""


@asynccontextmanager
async def a_stage(
    cluster: Cluster, database_url: str, *, image: str = IMAGE, namespaces: tuple[str, ...] = ()
) -> AsyncIterator[Stage]:
    db = await Database.open(database_url, pool_size=4)
    clock = SkippingClock()
    queue = WorkQueue(clock)
    lease = await leases.acquire(db, "controller", "test", ttl=600)
    assert lease is not None
    namespace = f"sets-{secrets.token_hex(4)}"
    servers, installation = Servers(), uuid4()
    api = await connect_api(kubeconfig=str(cluster.kubeconfig), context=None)
    async with api, connect(cluster) as kube:
        (await kube.post("/api/v1/namespaces", {"metadata": {"name": namespace}})).ok()
        await kube.eventually(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", bool)

        async def verify() -> None:
            pass

        context: Any = SimpleNamespace(
            api=api,
            db=db,
            clock=clock,
            listener=Silent(),
            publisher=SimpleNamespace(hint=lambda: None),
            installation_id=installation,
            installation_key=KEY,
            settings=ControllerSettings(namespaces=namespaces, poll_every=0.05),
            samples=SampleSettings(site=CacheSite(runtime_image=image), secret_namespaces=frozenset({"vault"})),
            runtimes=RuntimeServers(servers, timeout=5.0),
        )
        leadership: Any = SimpleNamespace(lease=lease, guard=lambda _: None)
        randomness = random.Random(1)
        limits = CacheLimits(namespace=namespace, secret_namespaces=frozenset({"vault"}))
        yield Stage(
            db=db,
            lease=lease,
            api=api,
            kube=kube,
            namespace=namespace,
            servers=servers,
            sets=SampleReconciler(context, leadership, verify, queue=queue),
            queue=queue,
            clock=clock,
            submitter=lambda kind: SampleSubmitter(kind, db, clock, lambda: None, limits, randomness),
            editor=lambda kind: SampleEditor(kind, db, clock, lambda: None, limits),
            installation=installation,
        )
        await kube.delete(f"/api/v1/namespaces/{namespace}")
    await db.close()


class Silent:
    """A listener that never hints."""

    def subscribe(self, _: str) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

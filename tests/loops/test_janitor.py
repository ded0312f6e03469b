"""The janitor deletes pods of jobs that Postgres does not know, and no pod of a job that begins meanwhile."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

from app.clock import SystemClock
from app.db.engine import Connection, Database
from app.domain import labels
from app.k8s.api import KubeApi
from app.k8s.codec import POD as POD_CODEC
from app.k8s.connection import connect
from app.k8s.reflector import Pace
from app.k8s.resources import POD
from app.loops.janitor import Janitor
from app.loops.mirror import Mirror
from tests.db.factories import new_job, submitted
from tests.support.kube import Cluster, KubeClient

INSTALLATION = str(uuid4())
TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Real Postgres and a real API server. The mirror follows no watch: it has what `begin` makes."""

    db: Database
    api: KubeApi
    kube: KubeClient
    namespace: str
    mirror: Mirror

    async def begin(self, name: str) -> UUID:
        """Store a job, then make its anchor and its pod, as submission and controller do."""
        (uid,) = await submitted(self.db, new_job(name, namespace=self.namespace, names=()))
        await self.make_pod(name, uid)
        return uid

    async def make_pod(self, name: str, uid: UUID) -> None:
        """Make the job's anchor and its pod, which the mirror takes in at once."""
        base = f"/api/v1/namespaces/{self.namespace}"
        metadata: dict[str, Any] = {"labels": {labels.INSTALLATION: INSTALLATION, labels.JOB_UID: str(uid)}}
        anchor_name = labels.anchor_name(str(uid))
        anchor = (await self.kube.post(f"{base}/configmaps", {"metadata": metadata | {"name": anchor_name}})).ok()
        owner = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": anchor_name,
            "uid": anchor["metadata"]["uid"],
            "controller": True,
        }
        metadata |= {"name": name, "finalizers": [labels.EVIDENCE_FINALIZER], "ownerReferences": [owner]}
        pod = {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
        (await self.kube.post(f"{base}/pods", pod)).ok()
        self.mirror.adopt(await self.api.get(POD, name, self.namespace, codec=POD_CODEC, timeout=TIMEOUT))

    async def pod(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.kube.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")).ok()
        return found

    async def release(self, name: str) -> None:
        """Let a pod that the test leaves behind go with its namespace."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}"
        (await self.kube.patch(path, {"metadata": {"finalizers": None}})).ok()

    def janitor(self, db: Any) -> Janitor:
        leadership: Any = SimpleNamespace(guard=lambda _: None)
        return Janitor(self.api, db, leadership, self.mirror, timeout=TIMEOUT)


class DatabaseWithNews:
    """A database in which `news` happens once, directly after the first read."""

    def __init__(self, db: Database, news: Callable[[], Awaitable[object]]) -> None:
        self._db = db
        self._news = news
        self.told = False

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Connection]:
        async with self._db.read() as connection:
            yield connection
        if not self.told:
            self.told = True
            await self._news()


@asynccontextmanager
async def a_stage(cluster: Cluster, database_url: str, kube: KubeClient, namespace: str) -> AsyncIterator[Stage]:
    async def verify() -> None:
        pass

    db = await Database.open(database_url, pool_size=2)
    async with await connect(kubeconfig=str(cluster.kubeconfig), context=None) as api:
        mirror = Mirror(
            api,
            INSTALLATION,
            SystemClock(),
            namespaces=(),
            pace=Pace(),
            verify=verify,
            doubt=lambda: None,
            on_change=lambda _: None,
        )
        yield Stage(db, api, kube, namespace, mirror)
    await db.close()


async def test_the_pod_of_a_job_that_begins_during_the_search_stays(
    cluster: Cluster, database_url: str, api: KubeClient, namespace: str
) -> None:
    """The janitor reads its pods before it reads the jobs: a pod that is made in between is not looked at."""
    async with a_stage(cluster, database_url, api, namespace) as stage:
        await stage.make_pod("stray", uuid4())
        await stage.begin("known")
        db = DatabaseWithNews(stage.db, lambda: stage.begin("newcomer"))
        await stage.janitor(db).free_strangers()
        assert db.told
        await api.gone(f"/api/v1/namespaces/{namespace}/pods/stray")
        for name in ("known", "newcomer"):
            metadata = (await stage.pod(name))["metadata"]
            assert "deletionTimestamp" not in metadata, name
            assert metadata["finalizers"] == [labels.EVIDENCE_FINALIZER], name
            await stage.release(name)

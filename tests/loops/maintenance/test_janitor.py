"""The janitor deletes orphans, and no pod of a known job, of a job that begins meanwhile, or of somebody else."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import msgspec

from app.db.postgres.engine import Connection, Database
from app.domain.access.namespaces import NamespaceSet
from app.domain.kubernetes import labels
from app.k8s.codec import POD as POD_CODEC
from app.k8s.codec import WORKLOAD as WORKLOAD_CODEC
from app.k8s.resources import POD
from app.loops.maintenance.janitor import Janitor
from tests.db.factories import new_job, submitted
from tests.loops.harness import WITHIN, Harness
from tests.support.clusters.kueue import pod_set
from tests.support.waiting import until


async def begin(harness: Harness, name: str) -> UUID:
    """Store a job, then make its anchor and its pod, as submission and controller do."""
    (uid,) = await submitted(harness.db, new_job(name, namespace=harness.namespace, names=()))
    await make_owned_pod(harness, name, uid)
    return uid


async def make_owned_pod(harness: Harness, name: str, uid: UUID) -> None:
    """Make the job's anchor and its pod."""
    await make_pod(harness, name, uid, ownerReferences=await harness.make_anchor(uid))


async def make_pod(harness: Harness, name: str, uid: UUID, **metadata: Any) -> None:
    """Make a pod with the labels of the job. The mirror, which follows no watch here, takes it in at once."""
    held = {"labels": harness.labels(uid), "finalizers": [labels.EVIDENCE_FINALIZER]}
    await harness.make_pod(name, **held, **metadata)
    harness.mirror.adopt(await harness.context.api.get(POD, name, harness.namespace, codec=POD_CODEC, timeout=60.0))


def a_janitor(harness: Harness, db: Any = None, served: NamespaceSet | None = None) -> Janitor:
    more: dict[str, Any] = {} if served is None else {"served": served}
    return Janitor(
        harness.context.api, db or harness.db, harness.leadership, harness.mirror, harness.queues, timeout=60.0, **more
    )


async def untouched(harness: Harness, *names: str) -> None:
    """Assert that these pods are neither deleted nor released."""
    pods = await harness.pods()
    for name in names:
        metadata = pods[name]["metadata"]
        assert "deletionTimestamp" not in metadata, name
        assert metadata["finalizers"] == [labels.EVIDENCE_FINALIZER], name


class DatabaseWithNews:
    """A database in which `news` happens once, directly after the first read."""

    def __init__(self, db: Database, news: Callable[[], Awaitable[object]]) -> None:
        self._db = db
        self._news = news
        self.happened = False

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Connection]:
        async with self._db.read() as connection:
            yield connection
        if not self.happened:
            self.happened = True
            await self._news()


async def test_the_pod_of_a_job_that_begins_during_the_search_stays(harness: Harness) -> None:
    """The janitor reads its pods before it reads the jobs: a pod that is made in between is not considered."""
    await make_owned_pod(harness, "orphan", uuid4())
    await begin(harness, "known")
    db = DatabaseWithNews(harness.db, lambda: begin(harness, "newcomer"))
    await a_janitor(harness, db).delete_orphans()
    assert db.happened
    await harness.kube.gone(f"{harness.path}/pods/orphan")
    await untouched(harness, "known", "newcomer")


async def test_a_pod_without_a_controlling_anchor_stays(harness: Harness) -> None:
    """Anybody can copy labels; only the garbage collector's owner reference proves whose a pod is."""
    await make_pod(harness, "forged", uuid4())
    body = {"metadata": {"name": "other"}}
    other = (await harness.kube.post(f"{harness.path}/configmaps", body)).ok()["metadata"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["uid"], "controller": True}
    await make_pod(harness, "owned-by-another", uuid4(), ownerReferences=[owner])
    await a_janitor(harness).delete_orphans()
    await untouched(harness, "forged", "owned-by-another")


async def test_an_orphan_whose_anchor_is_gone_is_released(harness: Harness) -> None:
    uid = uuid4()
    await make_owned_pod(harness, "orphan", uid)
    anchor = f"{harness.path}/configmaps/{labels.anchor_name(str(uid))}"
    (await harness.kube.delete(anchor)).ok()
    orphan = f"{harness.path}/pods/orphan"
    await harness.kube.eventually(orphan, lambda pod: pod["metadata"].get("deletionTimestamp"))
    (await harness.kube.delete(orphan, {"gracePeriodSeconds": 0})).ok()
    harness.mirror.adopt(await harness.context.api.get(POD, "orphan", harness.namespace, codec=POD_CODEC, timeout=60.0))
    await a_janitor(harness).delete_orphans()
    await harness.kube.gone(f"{harness.path}/pods/orphan")


async def test_an_orphan_in_a_namespace_that_is_not_served_stays(harness: Harness) -> None:
    await make_owned_pod(harness, "orphan", uuid4())
    await a_janitor(harness, served=NamespaceSet(only=frozenset({"another"}))).delete_orphans()
    await untouched(harness, "orphan")


async def test_an_orphan_that_cannot_be_deleted_now_does_not_hold_up_the_others(harness: Harness) -> None:
    await make_owned_pod(harness, "first", uuid4())
    await make_owned_pod(harness, "second", uuid4())
    await harness.inject(verb="delete", resource="pods", status=500, count=1)
    await a_janitor(harness).delete_orphans()
    await harness.hits()
    (left,) = await harness.pods()
    await untouched(harness, left)
    await a_janitor(harness).delete_orphans()
    await harness.kube.gone(f"{harness.path}/pods/{left}")


async def make_workload(harness: Harness, uid: UUID, **metadata: Any) -> str:
    """Make a Workload with the labels of the job, and return its path. The mirror takes it in at once."""
    held = {"labels": harness.labels(uid), "finalizers": [labels.ADMISSION_FINALIZER], **metadata}
    path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{harness.namespace}/workloads"
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "spec": {"podSets": [pod_set()]}}
    made = (await harness.kube.post(path, body | {"metadata": {"name": labels.anchor_name(str(uid)), **held}})).ok()
    harness.queues.adopt(WORKLOAD_CODEC.decode(msgspec.json.encode(made)))
    return f"{path}/{made['metadata']['name']}"


async def test_the_workload_of_an_unknown_job_is_deleted_after_its_last_pod(harness: Harness) -> None:
    uid = uuid4()
    owner = await harness.make_anchor(uid)
    await make_pod(harness, "orphan", uid, ownerReferences=owner)
    workload = await make_workload(harness, uid, ownerReferences=owner)
    forged = await make_workload(harness, uuid4())
    known = await make_workload(harness, job := await harness.submit(), ownerReferences=await harness.make_anchor(job))
    await a_janitor(harness).delete_orphans()
    await harness.kube.gone(f"{harness.path}/pods/orphan")
    assert (await harness.kube.get(workload)).ok(), "the mirror still has a pod that uses its quota"
    async with harness.reconciling():
        await until(lambda: harness.mirror.size, lambda found: found == 0, what="no pod in the mirror", within=WITHIN)
    await a_janitor(harness).delete_orphans()
    await harness.kube.gone(workload)
    for path in (forged, known):
        assert (await harness.kube.get(path)).ok()["metadata"]["finalizers"] == [labels.ADMISSION_FINALIZER]

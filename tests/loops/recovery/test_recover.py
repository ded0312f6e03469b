"""What `jobgate recover` does with the objects of unknown jobs, and how it binds a database to another cluster."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from app.base.clock import SystemClock
from app.db import cluster_namespaces
from app.db.cluster_namespaces import NamespaceLife
from app.db.feed import entries
from app.db.installation import identity as installation
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.postgres.engine import Database
from app.domain.kubernetes import labels
from app.domain.recovery.differences import Choices, Difference, NoRemedy, Remedy
from app.domain.status.records import JobStatus
from app.domain.vocabulary import JobPhase
from app.k8s.errors import Unreachable
from app.loops.leadership.identity import WrongCluster
from app.loops.recovery.survey import count
from app.running.connections import NotConfigured
from app.running.operations.recovering import Report, recover
from app.settings import Settings
from tests.db.factories import move, new_job, stored, submitted
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.clusters.kube_proxy import kube_proxy
from tests.support.clusters.kueue import pod_set
from tests.support.page_commands import run_commands

RELEASE, DELETE = Choices(unknown=Remedy.RELEASE), Choices(unknown=Remedy.DELETE)


class Scene:
    """A database, and the objects of its installation in one namespace."""

    def __init__(self, db: Database, cluster: Cluster, api: KubeClient, namespace: str, owner: str) -> None:
        self.db = db
        self.api = api
        self.owner = owner
        self.namespace = namespace
        self.kubeconfig = cluster.kubeconfig
        self.base = f"/api/v1/namespaces/{namespace}"
        self.system = f"{namespace}-system"
        self.records = f"/api/v1/namespaces/{self.system}/configmaps"
        self.record = f"{self.records}/jobgate-installation-{owner}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "JOBGATE_DATABASE_URL": self.db.url,
            "JOBGATE_KUBECONFIG": str(self.kubeconfig),
            "JOBGATE_SYSTEM_NAMESPACE": self.system,
        }

    async def recover(
        self,
        choices: Choices | None = None,
        *,
        confirmed: bool = True,
        rebinds: bool = False,
        meanwhile: Callable[[], object] = lambda: None,
        **settings: Any,
    ) -> tuple[Report, bool]:
        """Run the command, with `meanwhile` after its report. Return the report, and whether differences are left."""
        known: dict[str, Any] = {
            "kubeconfig": str(self.kubeconfig),
            "request_timeout": 5.0,
            "lease_without_contact": 0.5,
        }
        shown: list[Report] = []

        def show(report: Report) -> None:
            shown.append(report)
            meanwhile()

        given = Settings(database_url=self.db.url, system_namespace=self.system, namespaces=(), **(known | settings))
        differs = await recover(given, choices or Choices(), rebinds=rebinds, confirmed=confirmed, show=show)
        (report,) = shown
        return report, differs

    async def stop(self, position: int = 1000) -> None:
        """Let the cluster record that the database had reached more."""
        data = {"epoch": "7", "position": str(position)}
        record = {"metadata": {"name": f"jobgate-installation-{self.owner}"}, "data": data}
        (await self.api.post(self.records, {"apiVersion": "v1", "kind": "ConfigMap", **record})).ok()

    async def make_job(self, name: str, uid: UUID, *, owner: str | None = None, namespace: str | None = None) -> None:
        """Make an anchor, and a pod and a Workload that it owns."""
        found = self._labels(name, uid, owner)
        base = self.base if namespace is None else f"/api/v1/namespaces/{namespace}"
        anchor_name = labels.anchor_name(str(uid))
        anchor = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": anchor_name, "labels": found}}
        made = (await self.api.post(f"{base}/configmaps", anchor)).ok()["metadata"]
        owned = {"apiVersion": "v1", "kind": "ConfigMap", "name": anchor_name, "uid": made["uid"], "controller": True}
        await self.make_pod(f"{name}-0", found, base, ownerReferences=[owned])
        workload = {"name": anchor_name, "labels": found, "finalizers": [labels.ADMISSION_FINALIZER]}
        body = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": workload | {"ownerReferences": [owned]},
            "spec": {"podSets": [pod_set()]},
        }
        (await self.api.post(f"{self.workloads(namespace)}", body)).ok()

    def workloads(self, namespace: str | None = None) -> str:
        return f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace or self.namespace}/workloads"

    async def make_pod(self, name: str, found: Mapping[str, str], base: str, **metadata: Any) -> None:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": found, "finalizers": [labels.EVIDENCE_FINALIZER], **metadata},
            "spec": {"containers": [{"name": "main", "image": "busybox"}]},
        }
        (await self.api.post(f"{base}/pods", pod)).ok()

    def _labels(self, name: str, uid: UUID, owner: str | None) -> dict[str, str]:
        return {
            labels.INSTALLATION: owner or self.owner,
            labels.JOB_UID: str(uid),
            labels.INSTANCE: name,
            labels.KIND: "GenericJob",
        }

    async def metadata(self, resource: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.api.get(f"{self.base}/{resource}/{name}")).ok()["metadata"]
        return found


@pytest_asyncio.fixture
async def scene(db: Database, cluster: Cluster, api: KubeClient, namespace: str) -> AsyncIterator[Scene]:
    found = await installation.get_or_create(db, uuid4(), SystemClock().now())
    made = Scene(db, cluster, api, namespace, str(found.id))
    (await api.post("/api/v1/namespaces", {"metadata": {"name": made.system}})).ok()
    yield made
    await api.delete(f"/api/v1/namespaces/{made.system}")


async def test_released_objects_stay_and_are_not_of_this_installation_any_more(scene: Scene) -> None:
    uid = uuid4()
    await scene.stop()
    await scene.make_job("lost", uid)
    with pytest.raises(NoRemedy, match="lost"):
        await scene.recover(Choices(live=Remedy.FAIL))
    report, differs = await scene.recover(RELEASE)
    assert [(item.difference, item.name, item.uid, item.pods, item.workloads) for item in report.findings] == [
        (Difference.LOST, "lost", str(uid), ("lost-0",), (labels.anchor_name(str(uid)),))
    ]
    assert not differs
    anchor = labels.anchor_name(str(uid))
    workload = (await scene.api.get(f"{scene.workloads()}/{anchor}")).ok()["metadata"]
    for found in (await scene.metadata("pods", "lost-0"), await scene.metadata("configmaps", anchor), workload):
        assert not found.keys() & {"finalizers", "deletionTimestamp"}
        assert labels.INSTALLATION not in found["labels"]
        assert found["labels"][labels.JOB_UID] == str(uid)  # Services select by it
    report, differs = await scene.recover(confirmed=False)
    assert (report.stopped, report.findings, differs) == ("", [], False)


async def test_only_objects_of_unknown_jobs_of_this_installation_are_deleted(scene: Scene) -> None:
    """Neither a job of another installation, nor a known job, nor copies of labels."""
    lost, others = uuid4(), uuid4()
    (known,) = await submitted(scene.db, new_job("known", namespace=scene.namespace, names=()))
    await scene.stop()
    await scene.make_job("lost", lost)
    await scene.make_job("known", known)
    await scene.make_job("others", others, owner=str(uuid4()))
    copied = {labels.INSTALLATION: scene.owner, labels.JOB_UID: str(lost)}
    await scene.make_pod("copied", copied, scene.base)
    former = {"apiVersion": "v1", "kind": "ConfigMap", "name": labels.anchor_name(str(lost)), "controller": True}
    await scene.make_pod("former", copied, scene.base, ownerReferences=[former | {"uid": str(uuid4())}])
    report, _ = await scene.recover(DELETE)
    assert [(item.name, item.pods) for item in report.findings] == [("lost", ("lost-0",))]
    await scene.api.gone(f"{scene.base}/pods/lost-0")
    await scene.api.gone(f"{scene.base}/configmaps/{labels.anchor_name(str(lost))}")
    # The janitor of the controller deletes it when no pod uses its quota.
    workload = (await scene.api.get(f"{scene.workloads()}/{labels.anchor_name(str(lost))}")).ok()["metadata"]
    assert workload["finalizers"] == [labels.ADMISSION_FINALIZER]
    for name in ("known-0", "others-0", "copied"):
        pod = await scene.metadata("pods", name)
        assert "deletionTimestamp" not in pod, name
        assert pod["finalizers"] == [labels.EVIDENCE_FINALIZER], name
        await scene.api.patch(f"{scene.base}/pods/{name}", {"metadata": {"finalizers": None}})
    # The garbage collector may delete it, and its finalizer is none of the recovery's.
    assert (await scene.metadata("pods", "former"))["finalizers"] == [labels.EVIDENCE_FINALIZER]
    await scene.api.patch(f"{scene.base}/pods/former", {"metadata": {"finalizers": None}})


async def test_an_anchor_in_another_namespace_says_nothing_about_a_job(scene: Scene, lease: Lease) -> None:
    """A client that copies the labels of a job of another namespace can neither end nor delete it."""
    elsewhere = f"{scene.namespace}-copy"
    (await scene.api.post("/api/v1/namespaces", {"metadata": {"name": elsewhere}})).ok()
    (uid,) = await submitted(scene.db, new_job("job", namespace=scene.namespace, names=()))
    await move(scene.db, lease, uid, JobPhase.RUNNING)
    await scene.make_job("job", uid)
    await scene.make_job("job", uid, namespace=elsewhere)
    mark = {"metadata": {"annotations": {labels.TERMINAL_PHASE: "Failed"}}}
    anchor = f"/api/v1/namespaces/{elsewhere}/configmaps/{labels.anchor_name(str(uid))}"
    (await scene.api.patch(anchor, mark)).ok()
    report, differs = await scene.recover(confirmed=False)
    assert (report.findings, differs) == ([], False)
    for place in (scene.namespace, elsewhere):
        pod = f"/api/v1/namespaces/{place}/pods/job-0"
        await scene.api.patch(pod, {"metadata": {"finalizers": None}})
    await scene.api.delete(f"/api/v1/namespaces/{elsewhere}")


@pytest.mark.parametrize(
    ("mark", "phase"), [(None, JobPhase.RUNNING), ("Succeeded", JobPhase.SUCCEEDED)], ids=["live", "ended"]
)
async def test_an_anchor_that_lost_its_labels_is_not_missing(
    scene: Scene, lease: Lease, mark: str | None, phase: JobPhase
) -> None:
    """A job whose pods run must not fail as one without objects."""
    (uid,) = await submitted(scene.db, new_job("job", namespace=scene.namespace, names=()))
    await scene.make_job("job", uid)
    anchor = labels.anchor_name(str(uid))
    made = await scene.metadata("configmaps", anchor)
    await move(scene.db, lease, uid, JobPhase.RUNNING, anchors=(made["uid"],))
    await leases.release(scene.db, lease)
    await scene.stop()
    change = {"metadata": {"labels": None, "annotations": {labels.TERMINAL_PHASE: mark}}}
    (await scene.api.patch(f"{scene.base}/configmaps/{anchor}", change)).ok()
    report, _ = await scene.recover(Choices(live=Remedy.FAIL))
    assert [(item.difference, item.pods) for item in report.findings] == [(Difference.ENDED, ("job-0",))] * bool(mark)
    assert (await stored(scene.db, uid)).recorded.status.phase is phase
    await scene.api.patch(f"{scene.base}/pods/job-0", {"metadata": {"finalizers": None}})


async def test_the_database_continues_beyond_what_clients_and_the_cluster_have_seen(scene: Scene) -> None:
    (uid,) = await submitted(scene.db, new_job("job", namespace=scene.namespace, names=()))
    await entries.publish(scene.db)
    before, version = await entries.bounds(scene.db), (await stored(scene.db, uid)).version
    await scene.stop(position=5000)
    report, _ = await scene.recover()
    assert "feed position 1 here, 7 and 5000 in ConfigMap" in report.stopped
    assert [item.difference for item in report.findings] == [Difference.UNSTARTED]
    after = await entries.bounds(scene.db)
    assert after.last >= 5000
    assert not after.continues(before.epoch, before.last)
    assert (await entries.read(scene.db, 0, 10)).events == []
    assert (await stored(scene.db, uid)).version > version + 100_000
    assert await leases.epoch(scene.db, leases.CONTROLLER) > 7
    recorded = (await scene.api.get(scene.record)).ok()["data"]
    assert (int(recorded["epoch"]), int(recorded["position"])) == (
        await leases.epoch(scene.db, leases.CONTROLLER),
        after.last,
    )


async def test_servers_of_an_unknown_sample_set_are_named_and_stay(scene: Scene) -> None:
    found = {labels.INSTALLATION: scene.owner, labels.SAMPLE_SET_UID: str(uuid4())}
    pod = {"metadata": {"labels": found}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    body = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "servers", "labels": found},
        "spec": {"replicas": 0, "selector": {"matchLabels": found}, "serviceName": "servers", "template": pod},
    }
    sets = f"/apis/apps/v1/namespaces/{scene.namespace}/statefulsets"
    (await scene.api.post(sets, body)).ok()
    await scene.stop()
    report, _ = await scene.recover(DELETE)
    assert report.sets == [f"{scene.namespace}/servers"]
    assert "deletionTimestamp" not in (await scene.api.get(f"{sets}/servers")).ok()["metadata"]


async def test_a_controller_that_works_keeps_its_lease(scene: Scene, lease: Lease) -> None:
    await scene.stop()
    await scene.make_job("lost", uuid4())
    with pytest.raises(NotConfigured, match="the lease of the controller was not free"):
        await scene.recover(DELETE, lease_seconds=1.0, request_timeout=0.5)
    assert "recovery" not in (await scene.api.get(scene.record)).ok()["data"]
    assert "deletionTimestamp" not in await scene.metadata("pods", "lost-0")
    await leases.release(scene.db, lease)
    await scene.recover(DELETE)


async def test_nothing_changes_if_another_cluster_answers_after_the_report(
    scene: Scene, cluster: Cluster, tmp_path: Path
) -> None:
    """All objects would seem to be gone. Neither the other cluster nor the record of a job changes."""
    (uid,) = await submitted(scene.db, new_job("job", namespace=scene.namespace, names=()))
    await scene.stop()
    await scene.make_job("job", uid)
    await scene.make_job("lost", uuid4())
    before = await stored(scene.db, uid)
    with running_embedded_cluster(tmp_path / "other", "--nodes", "0", f"--token={cluster.token}") as other:
        async with kube_proxy(cluster) as proxy, connect(other) as api:
            through = str(proxy.kubeconfig(tmp_path / "kubeconfig"))
            choices = Choices(unknown=Remedy.DELETE, live=Remedy.FAIL)
            with pytest.raises(WrongCluster, match="another cluster answers"):
                await scene.recover(choices, kubeconfig=through, meanwhile=lambda: proxy.swap(other))
            assert (await api.get(scene.record)).status == 404
    assert await stored(scene.db, uid) == before
    assert "deletionTimestamp" not in await scene.metadata("pods", "lost-0")


async def test_a_cluster_that_does_not_answer_changes_nothing_until_it_does(
    scene: Scene, cluster: Cluster, tmp_path: Path
) -> None:
    await scene.stop()
    await scene.make_job("lost", uuid4())
    async with kube_proxy(cluster) as proxy:
        through = str(proxy.kubeconfig(tmp_path / "kubeconfig"))
        proxy.hang()
        with pytest.raises(Unreachable):
            await scene.recover(DELETE, kubeconfig=through, request_timeout=0.5)
        proxy.heal()
        proxy.lose("DELETE", times=100)  # the answers to deletions
        with pytest.raises((Unreachable, ExceptionGroup)):
            await scene.recover(DELETE, kubeconfig=through, request_timeout=0.5)
    report, _ = await scene.recover(DELETE)
    assert "has begun and not completed" in report.stopped
    await scene.api.gone(f"{scene.base}/pods/lost-0")


async def bind(scene: Scene, remedy: Remedy, directory: Path) -> None:
    """Bind the database to the cluster: with the commands of the page, if they have this remedy."""
    if remedy is Remedy.REQUEUE:
        page = partial(run_commands, "recovery.md", "Another cluster", directory, **scene.environment)
        shown = await asyncio.to_thread(page)
        assert "1 Missing, 1 Unstarted" in shown
        assert shown.endswith("Recovered. The controller continues.\n")
        return
    report, differs = await scene.recover(Choices(live=remedy), rebinds=True)
    assert not differs
    assert "another" in report.stopped
    found = {Difference.MISSING: 1, Difference.UNSTARTED: 1}
    assert count(report.findings) == dict.fromkeys(Difference, 0) | found


BOUND_ELSEWHERE = "UPDATE installation SET cluster_uid = 'another'"


@pytest.mark.parametrize(
    ("remedy", "phase", "reason"),
    [(Remedy.REQUEUE, JobPhase.UNKNOWN, "ObjectsMissing"), (Remedy.FAIL, JobPhase.FAILED, "ObjectsMissing")],
)
async def test_a_database_is_bound_to_another_cluster(
    scene: Scene, lease: Lease, tmp_path: Path, remedy: Remedy, phase: JobPhase, reason: str
) -> None:
    uids = await submitted(
        scene.db, *(new_job(name, namespace=scene.namespace, names=()) for name in ("ran", "queued", "ended"))
    )
    ran, queued, ended = uids
    await move(scene.db, lease, ran, JobPhase.RUNNING, anchors=("of the other cluster",))
    await move(scene.db, lease, ended, JobPhase.SUCCEEDED)
    lives = {scene.namespace: NamespaceLife("of the other cluster", SystemClock().now())}
    assert await cluster_namespaces.bind(scene.db, lease, lives, SystemClock().now()) == []
    await leases.release(scene.db, lease)
    async with scene.db.read() as connection:
        await connection.execute(BOUND_ELSEWHERE)
    with pytest.raises(NotConfigured, match="--cluster"):
        await scene.recover(Choices(live=remedy))

    await bind(scene, remedy, tmp_path)
    status: JobStatus = (await stored(scene.db, ran)).recorded.status
    assert (status.phase, status.reason) == (phase, reason)
    assert (await stored(scene.db, queued)).recorded.status.phase is JobPhase.QUEUED
    assert (await stored(scene.db, ended)).recorded.status.phase is JobPhase.SUCCEEDED
    # The namespace of the new cluster is no later life of the one of the former cluster.
    held = await leases.acquire(scene.db, leases.CONTROLLER, "next", 60.0)
    assert held is not None
    here = {scene.namespace: NamespaceLife("of this cluster", SystemClock().now())}
    assert await cluster_namespaces.bind(scene.db, held, here, SystemClock().now()) == []
    assert (await installation.read(scene.db)).cluster_uid != "another"

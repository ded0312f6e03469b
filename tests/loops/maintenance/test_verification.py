"""`jobgate verify` finds where the cluster and the database differ, and changes neither."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest_asyncio

from app.domain.kubernetes import labels
from app.loops.maintenance import verification
from app.running.operations.verification import as_text, verify
from app.settings import Settings
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.clusters.kueue import pod_set
from tests.support.gateways.forked_commands import jobgate
from tests.support.machine.terminals import on_terminal
from tests.support.verified_world import ENDED, RUNNING, create_world

GONE = uuid4()


class World:
    """A healthy installation: a job with two pods, and what its database knows of them."""

    def __init__(self, db: Any, api: KubeClient, cluster: Cluster, url: str, namespace: str, installation: str) -> None:
        self.db = db
        self.api = api
        self.base = f"/api/v1/namespaces/{namespace}"
        self._installation = installation
        self.settings = Settings(database_url=url, kubeconfig=str(cluster.kubeconfig), namespaces=(namespace,))
        self.created: list[str] = []

    async def anchor(self, job: object) -> str:
        metadata = {"name": labels.anchor_name(str(job)), "labels": self._labels(job)}
        made = (await self.api.post(f"{self.base}/configmaps", {"metadata": metadata})).ok()
        return str(made["metadata"]["uid"])

    async def pod(self, name: str, job: object, anchor: str, rank: int, attempt: int) -> str:
        key = {labels.TASK: "worker", labels.TASK_RANK: str(rank), labels.ATTEMPT: str(attempt)}
        metadata = {
            "name": name,
            "labels": self._labels(job) | key,
            "finalizers": [labels.EVIDENCE_FINALIZER],
            "ownerReferences": [self._owner(job, anchor)],
        }
        spec = {"containers": [{"name": "main", "image": "busybox"}]}
        self.created.append(f"{self.base}/pods/{name}")
        made = (await self.api.post(f"{self.base}/pods", {"metadata": metadata, "spec": spec})).ok()
        return str(made["metadata"]["uid"])

    async def workload(self, name: str, job: object, anchor: str | None) -> None:
        owners = [] if anchor is None else [self._owner(job, anchor)]
        body = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {"name": name, "labels": self._labels(job), "ownerReferences": owners},
            "spec": {"podSets": [pod_set()]},
        }
        base = self.base.replace("/api/v1/", "/apis/kueue.x-k8s.io/v1beta2/")
        (await self.api.post(f"{base}/workloads", body)).ok()

    async def remove(self, path: str) -> None:
        await self.api.patch(path, {"metadata": {"finalizers": None}})
        await self.api.delete(path)
        await self.api.gone(path)

    async def faults(self) -> Mapping[str, list[str]]:
        results = await verify(self.settings, database_only=False, pause=0)
        return {one.name: [fault.subject + ": " + fault.found for fault in one.faults] for one in results if one.faults}

    def _owner(self, job: object, anchor: str) -> dict[str, Any]:
        name = labels.anchor_name(str(job))
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": anchor, "controller": True}

    def _labels(self, job: object) -> dict[str, str]:
        return {labels.INSTALLATION: self._installation, labels.JOB_UID: str(job)}


@pytest_asyncio.fixture
async def world(database_url: str, cluster: Cluster, api: KubeClient, namespace: str) -> Any:
    db = await asyncpg.connect(database_url, timeout=60)
    await create_world(db)
    for table in ("jobs", "planned_pods"):
        await db.execute(f"UPDATE {table} SET namespace = $1", namespace)
    installation = str(await db.fetchval("SELECT id FROM installation"))
    found = World(db, api, cluster, database_url, namespace, installation)
    anchor = await found.anchor(RUNNING)
    for rank, attempt in ((0, 2), (1, 1)):
        uid = await found.pod(f"running-worker-{rank}", RUNNING, anchor, rank, attempt)
        await db.execute("UPDATE replicas SET pod_uid = $1 WHERE job_uid = $2 AND rank = $3", uid, RUNNING, rank)
    yield found
    for path in found.created:
        await api.patch(path, {"metadata": {"finalizers": None}})
    await db.close()


async def test_a_healthy_cluster_has_no_fault(world: World, tmp_path: Path) -> None:
    """Each check of the cluster has something to examine. The command reports them all."""
    url, kubeconfig = str(world.settings.database_url), str(world.settings.kubeconfig)
    given = {"JOBGATE_DATABASE_URL": url, "JOBGATE_KUBECONFIG": kubeconfig}
    ran = jobgate("verify", "-o", "json", "--pause", "0", home=tmp_path, **given)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    examined = {check["name"]: check["examined"] for check in json.loads(ran.stdout)["checks"]}
    of_cluster = set(verification.CLUSTER_CHECKS) - {"owners-of-workloads"}
    assert {name: examined[name] for name in of_cluster if not examined[name]} == {}


async def test_objects_without_a_job_are_found(world: World) -> None:
    anchor = await world.anchor(GONE)
    await world.pod("nobody-0", GONE, anchor, 0, 1)
    await world.workload("nobody", GONE, anchor)
    await world.workload("labelled", GONE, None)  # by another client
    found = await world.faults()
    assert set(found) == {"owners-of-pods", "owners-of-anchors", "owners-of-workloads", "pods-with-attempt"}
    assert ["/nobody " in line for line in found["owners-of-workloads"]] == [True]
    assert ["/nobody-0 " in line for line in found["owners-of-pods"]] == [True]
    assert [f"no job {GONE} that has objects" in line for line in found["owners-of-anchors"]] == [True]


async def test_objects_of_a_job_whose_objects_are_gone_are_found(world: World) -> None:
    await world.anchor(ENDED)
    assert "owners-of-anchors" not in await world.faults()
    await world.db.execute("UPDATE jobs SET gone_at = now() WHERE uid = $1", ENDED)
    await world.db.execute("DELETE FROM names WHERE job_uid = $1", ENDED)
    assert set(await world.faults()) == {"owners-of-anchors"}


async def test_a_second_pod_of_an_attempt_is_found(world: World) -> None:
    anchor = (await world.api.get(f"{world.base}/configmaps/{labels.anchor_name(str(RUNNING))}")).ok()["metadata"]
    await world.pod("second", RUNNING, anchor["uid"], 1, 1)
    found = await world.faults()
    assert set(found) == {"one-pod-in-cluster", "pods-with-attempt"}
    assert "is of the same attempt" in found["one-pod-in-cluster"][0]


async def test_an_attempt_whose_pod_is_gone_or_another_is_found(world: World) -> None:
    await world.remove(world.created[0])
    await world.db.execute("UPDATE replicas SET pod_uid = 'another' WHERE job_uid = $1 AND rank = 1", RUNNING)
    found = await world.faults()
    assert "the cluster has no pod running-worker-0" in found["attempts-with-pod"][0]
    assert "the pod running-worker-1 has the uid" in found["attempts-with-pod"][1]
    assert set(found) == {"attempts-with-pod", "pods-with-attempt"}


async def test_pods_without_their_anchor_are_found(world: World) -> None:
    """Without it, nothing deletes them with the job."""
    anchor = f"{world.base}/configmaps/{labels.anchor_name(str(RUNNING))}"
    await world.api.patch(anchor, {"metadata": {"labels": {labels.INSTALLATION: None}}})
    found = await world.faults()
    assert [line.endswith(f"the job {RUNNING} has no anchor") for line in found["pods-with-anchor"]] == [True, True]


async def test_a_fault_of_the_database_is_reported_without_a_cluster(world: World, tmp_path: Path) -> None:
    await world.db.execute("UPDATE jobs SET history_count = 9 WHERE uid = $1", RUNNING)
    given = {"JOBGATE_DATABASE_URL": str(world.settings.database_url)}
    ran = jobgate("verify", "--database-only", "--pause", "0", home=tmp_path, **given)
    assert ran.returncode == 1
    assert "1 fault: a change and its history row share a transaction" in ran.stdout
    assert f"running {RUNNING}: history_count is 9, and there are 3 rows, numbered from 1 to 3" in ran.stdout
    assert "owners-of-pods" not in ran.stdout


async def test_many_faults_are_counted(world: World) -> None:
    await world.db.execute(
        "INSERT INTO room_waits (job_uid, namespace, priority, created_at, pods) "
        "SELECT gen_random_uuid(), 'team', 0, now(), 1 FROM generate_series(1, 30)"
    )
    results = await verify(world.settings, database_only=True, pause=0)
    lines = as_text([one for one in results if one.name == "owners-of-room-waits"])
    assert "30 faults: " in lines[0]
    assert (len(lines), lines[-1]) == (22, "    and 10 others: -o json shows them")


async def test_the_progress_is_on_the_terminal_and_gone_in_the_end(world: World, tmp_path: Path) -> None:
    shown: list[str] = []
    command = [sys.executable, "-c", "from app.cli import app; app()", "verify", "--database-only"]
    given = {"JOBGATE_DATABASE_URL": str(world.settings.database_url), "PATH": os.environ["PATH"]}
    screen = await asyncio.to_thread(on_terminal, command, cwd=Path.cwd(), env=given, timeout=240, follow=shown.append)
    assert "jobs: 3 examined" in "".join(shown)
    assert "examined" not in screen
    assert "history-numbers" in screen
    quiet = await asyncio.to_thread(jobgate, "verify", "--database-only", home=tmp_path, **given)
    assert quiet.stderr == ""

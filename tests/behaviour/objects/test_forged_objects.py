"""Forged objects with labels of jobgate change no job. jobgate neither deletes them nor removes their finalizers.

Labels that another client removed from a real pod are restored, and no replica starts twice.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest_asyncio

from tests.behaviour.client import Body, Jobs
from tests.behaviour.manifests import container, job, task
from tests.behaviour.stage import fresh_namespace
from tests.support.clusters.kube import KubeClient

PORT = {"ports": [{"port": 2222}]}
FINALIZER = "jobgate.dev/evidence"
RELEASED = {"metadata": {"finalizers": None}}
JOB_UID, INSTALLATION = "jobgate.dev/job-uid", "jobgate.dev/installation"


class Forger:
    """Makes objects with all labels of real ones, and lets go of them afterwards."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._pods: dict[str, str] = {}

    async def pod(self, real: Body, namespace: str, name: str, owners: Any = None, **labels: str) -> str:
        """A pod that has failed with the real one's labels; its path."""
        metadata: Body = {
            "name": name,
            "labels": {**real["metadata"]["labels"], **labels},
            "finalizers": [FINALIZER],
            "ownerReferences": owners or [],
        }
        spec = {"containers": [container()], "nodeSelector": {"no": "such-node"}}
        path = f"/api/v1/namespaces/{namespace}/pods"
        made = (await self._kube.post(path, {"metadata": metadata, "spec": spec})).ok()
        self._pods[f"{path}/{name}"] = made["metadata"]["uid"]
        status = {"status": {"phase": "Failed", "reason": "Evicted", "message": "forged"}}
        (await self._kube.patch(f"{path}/{name}/status", status)).ok()
        return f"{path}/{name}"

    async def decoy(self, namespace: str) -> list[Body]:
        """The reference to another controller."""
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        made = (await self._kube.post(path, {"metadata": {"name": "decoy"}})).ok()
        return [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "decoy",
                "uid": made["metadata"]["uid"],
                "controller": True,
            }
        ]

    async def labelled(self, namespace: str, kind: str, labels: Mapping[str, str], **body: Any) -> str:
        path = f"/api/v1/namespaces/{namespace}/{kind}"
        (await self._kube.post(path, {"metadata": {"name": "forged", "labels": dict(labels)}, **body})).ok()
        return f"{path}/forged"

    async def assert_untouched(self) -> None:
        for path, uid in self._pods.items():
            metadata = (await self._kube.get(path)).ok()["metadata"]
            assert metadata["uid"] == uid
            assert "deletionTimestamp" not in metadata, path
            assert metadata["finalizers"] == [FINALIZER], path

    async def let_go(self) -> None:
        for path in self._pods:
            await self._kube.patch(path, RELEASED)
            await self._kube.delete(path)


@pytest_asyncio.fixture
async def forger(kube: KubeClient) -> AsyncIterator[Forger]:
    found = Forger(kube)
    yield found
    await found.let_go()


@pytest_asyncio.fixture
async def elsewhere(kube: KubeClient, forger: Forger) -> AsyncIterator[str]:
    async with fresh_namespace(kube) as name:
        yield name
        await forger.let_go()


async def seen_by_the_controller(jobs: Jobs, *names: str) -> None:
    """Whatever happened before: the watch has told of it, since it tells in order, and each job has had a pass."""
    await jobs.submit(job("marker", task("exit 0")))
    await jobs.until("marker", "Succeeded")
    for name in names:
        changed = await jobs.ask("PATCH", name, json={"spec": {"cleanUpPolicy": "All"}})
        assert changed["status"]["observedGeneration"] < changed["generation"], "the edit asks for a pass"
        await jobs.until_observed(name, int(changed["generation"]))


async def test_forged_pods_change_no_job_and_stay(jobs: Jobs, forger: Forger, elsewhere: str) -> None:
    uid = (await jobs.submit(job("victim", task(replicas=2), service=PORT)))["uid"]
    await jobs.until("victim", "Running")
    real = await jobs.pod("victim-worker-0")
    before = {pod["metadata"]["uid"] for pod in await jobs.of_job("pods", uid)}
    owners = real["metadata"]["ownerReferences"]
    decoy = await forger.decoy(jobs.namespace)
    await forger.pod(real, elsewhere, "victim-worker-0")
    await forger.pod(real, elsewhere, "victim-worker-1", **{"jobgate.dev/task-rank": "1", "jobgate.dev/attempt": "2"})
    await forger.pod(real, jobs.namespace, "forged", decoy)
    await forger.pod(real, jobs.namespace, "forged-rank", decoy, **{"jobgate.dev/task-rank": "77"})
    await forger.pod(real, jobs.namespace, "unknown", decoy, **{JOB_UID: "6f1c4c66-0000-4000-8000-000000000000"})
    # Even the real controller's uid does not make a pod of another name the job's.
    await forger.pod(real, jobs.namespace, "forged-owned", owners)
    await seen_by_the_controller(jobs, "victim")
    status = await jobs.status("victim")
    assert (status["phase"], status["aggregate"]["running"]) == ("Running", 2)
    assert {item["attempt"] for item in (await jobs.replicas("victim")).values()} == {1}
    assert {(await jobs.pod(f"victim-worker-{rank}"))["metadata"]["uid"] for rank in (0, 1)} == before
    await forger.assert_untouched()


async def test_a_pod_of_the_same_name_under_another_owner_is_not_the_jobs(jobs: Jobs, forger: Forger) -> None:
    """It can only be there while the job has no pod of its own: here the job is paused."""
    await jobs.submit(job("held"))
    await jobs.until("held", "Running")
    real = await jobs.pod("held-worker-0")
    await jobs.pause("held")
    await jobs.until("held", "Paused")
    await jobs.until_pod_gone("held-worker-0")
    before = await jobs.status("held")
    await forger.pod(real, jobs.namespace, "held-worker-0", await forger.decoy(jobs.namespace))
    await seen_by_the_controller(jobs, "held")
    after = await jobs.status("held")
    assert (after["phase"], after["reason"], after["aggregate"]) == ("Paused", before["reason"], before["aggregate"])
    await forger.assert_untouched()


async def test_removing_a_job_leaves_forged_objects(jobs: Jobs, forger: Forger, elsewhere: str) -> None:
    uid = (await jobs.submit(job("leaves", service=PORT)))["uid"]
    await jobs.until("leaves", "Running")
    [service] = await jobs.of_job("services", uid)
    labels = service["metadata"]["labels"]
    await forger.pod(await jobs.pod("leaves-worker-0"), elsewhere, "leaves-worker-0")
    kept = [
        await forger.labelled(jobs.namespace, "services", labels, spec={"ports": [{"port": 80}]}),
        await forger.labelled(jobs.namespace, "configmaps", labels),
    ]
    await jobs.delete("leaves")
    await jobs.kube.gone(jobs.objects("configmaps", f"jobgate-{uid}"))
    await jobs.kube.gone(jobs.objects("services", "leaves-worker-0"))
    await jobs.until_pod_gone("leaves-worker-0")
    for path in kept:
        assert "deletionTimestamp" not in (await jobs.kube.get(path)).ok()["metadata"]
    await forger.assert_untouched()


async def test_labels_that_somebody_takes_off_are_put_back(jobs: Jobs) -> None:
    uid = (await jobs.submit(job("bare")))["uid"]
    await jobs.until("bare", "Running")
    before = await jobs.pod("bare-worker-0")
    off = {key: None for key in before["metadata"]["labels"] if key != "jobgate.dev/kind"}
    (await jobs.kube.patch(jobs.objects("pods", "bare-worker-0"), {"metadata": {"labels": off}})).ok()
    after = await jobs.until_pod("bare-worker-0", lambda pod: pod["metadata"]["labels"].get(JOB_UID) == uid)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["labels"][INSTALLATION] == before["metadata"]["labels"][INSTALLATION]
    await seen_by_the_controller(jobs, "bare")
    replica = await jobs.replica("bare")
    assert (replica["attempt"], replica["phase"]) == (1, "Running")
    assert (await jobs.status("bare"))["phase"] == "Running"
    await jobs.delete("bare")
    await jobs.until_pod_gone("bare-worker-0")

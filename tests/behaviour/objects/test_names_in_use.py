"""A name in use: a job waits for the objects of a former job, and leaves those of another client unchanged."""

from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.client import Jobs
from tests.behaviour.manifests import container, job, task, until_marked

PORT = {"ports": [{"port": 2222}]}
MINE = {"metadata": {"finalizers": None}}


async def test_a_successor_waits_for_the_leftovers_of_the_job_before_it(jobs: Jobs) -> None:
    """The first one's pod cannot go: somebody else's finalizer holds it."""
    first = (await jobs.submit(job("train", task("exit 1"))))["uid"]
    await jobs.until("train", "Failed")
    await jobs.until_released(first)
    hold = {"metadata": {"finalizers": ["example.com/hold"]}}
    (await jobs.kube.patch(jobs.objects("pods", "train-worker-0"), hold)).ok()
    second = (await jobs.submit(job("train", task("exit 0"))))["uid"]
    status = await jobs.until_status("train", lambda status: status["reason"] == "PreviousObjects")
    assert status["phase"] == "Queued"
    assert "train-worker-0" in (await jobs.pending("train", "PreviousObjects"))["message"]
    (await jobs.kube.patch(jobs.objects("pods", "train-worker-0"), MINE)).ok()
    await jobs.until("train", "Succeeded")
    assert (await jobs.job("train"))["uid"] == second
    history = (await jobs.read_uid(first, "history"))["items"]
    assert "RemoveRequested" in [row["reason"] for row in history]
    assert (await jobs.read_uid(first))["status"]["phase"] == "Failed"
    await jobs.until_objects("configmaps", first, lambda found: not found)


async def test_a_successor_with_services_takes_the_names_over(jobs: Jobs) -> None:
    first = (await jobs.submit(job("serve", task("echo old; exit 0"), service=PORT)))["uid"]
    await jobs.until("serve", "Succeeded")
    second = (await jobs.submit(job("serve", task("echo new; exit 0"), service=PORT)))["uid"]
    await jobs.until("serve", "Succeeded")
    assert first != second
    assert (await jobs.log("serve")).text == "new\n"
    [service] = await jobs.of_job("services", second)
    assert service["spec"]["selector"]["jobgate.dev/job-uid"] == second


async def test_a_former_job_keeps_its_own_log_when_a_successor_has_its_names(jobs: Jobs) -> None:
    first = (await jobs.submit(job("serve", task("echo old; exit 0"))))["uid"]
    await jobs.until("serve", "Succeeded")
    await jobs.submit(job("serve", task("echo new; exit 0")))
    await jobs.until("serve", "Succeeded")
    assert (await jobs.http.get(f"/api/v1/jobs/{first}/logs")).text == "old\n"


@pytest.mark.parametrize("kind", ["pods", "services"])
async def test_a_foreign_object_of_the_same_name_fails_the_job_and_is_left_alone(jobs: Jobs, kind: str) -> None:
    specs: dict[str, Any] = {
        "pods": {"containers": [container()], "nodeSelector": {"no": "such-node"}},
        "services": {"ports": [{"port": 80}]},
    }
    foreign = {"metadata": {"name": "taken-worker-1", "labels": {"whose": "somebody"}}, "spec": specs[kind]}
    before = (await jobs.kube.post(jobs.objects(kind), foreign)).ok()
    uid = (await jobs.submit(job("taken", task(replicas=2, nodeSelector={"no": "such-node"}), service=PORT)))["uid"]
    status = await jobs.until("taken", "Failed")
    assert status["reason"] == "NameConflict"
    assert "taken-worker-1" in status["message"]
    await jobs.until_objects("pods", uid, lambda pods: not pods)
    await jobs.delete("taken")
    await jobs.until_objects("configmaps", uid, lambda found: not found)
    after = (await jobs.kube.get(jobs.objects(kind, "taken-worker-1"))).ok()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["labels"] == {"whose": "somebody"}
    assert "deletionTimestamp" not in after["metadata"]


async def test_an_attempt_waits_until_the_one_before_has_left_its_name(jobs: Jobs, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    await jobs.submit(job("slow", task(until_marked(mark, "exit 1"), policy="OnFailure", limit=1)))
    await jobs.until("slow", "Running")
    path = jobs.objects("pods", "slow-worker-0")
    both = {"metadata": {"finalizers": ["jobgate.dev/evidence", "example.com/hold"]}}
    (await jobs.kube.patch(path, both)).ok()
    mark.touch()
    await jobs.until_replica("slow", lambda replica: replica["attempt"] == 2)
    await jobs.pending("slow", "NameTerminating")
    pod = await jobs.until_pod("slow-worker-0", lambda pod: pod["metadata"]["finalizers"] == ["example.com/hold"])
    assert pod["metadata"]["labels"]["jobgate.dev/attempt"] == "1"
    (await jobs.kube.patch(path, MINE)).ok()
    await jobs.until("slow", "Failed")
    assert (await jobs.replica("slow"))["attempt"] == 2


async def test_an_anchor_that_somebody_deleted_is_made_again_and_the_job_goes_on(jobs: Jobs) -> None:
    """Without its owner the cluster collects everything; the job's pods are replaced, and charged to nobody."""
    uid = (await jobs.submit(job("rooted", task(replicas=2), service=PORT)))["uid"]
    await jobs.until("rooted", "Running")
    [before] = await jobs.of_job("configmaps", uid)
    (await jobs.kube.delete(jobs.objects("configmaps", f"jobgate-{uid}"))).ok()

    def is_new(anchors: Any) -> bool:
        return bool(anchors) and anchors[0]["metadata"]["uid"] != before["metadata"]["uid"]

    [anchor] = await jobs.until_objects("configmaps", uid, is_new)
    for rank in ("worker-0", "worker-1"):
        await jobs.until_replica(
            "rooted", lambda replica: replica["attempt"] >= 2 and replica["phase"] == "Running", rank
        )
    assert {replica["restartCount"] for replica in (await jobs.replicas("rooted")).values()} == {0}
    for kind in ("pods", "services"):

        def are_adopted(found: Any) -> bool:
            owners = [item["metadata"]["ownerReferences"][0]["uid"] for item in found]
            return owners == [anchor["metadata"]["uid"]] * 2

        await jobs.until_objects(kind, uid, are_adopted)
    await jobs.cancel("rooted")
    await jobs.until("rooted", "Cancelled")


async def test_an_anchor_deleted_with_orphans_does_not_disturb_the_job(jobs: Jobs, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    uid = (await jobs.submit(job("calm", task(until_marked(mark, "exit 0")))))["uid"]
    await jobs.until("calm", "Running")
    orphan = {"propagationPolicy": "Orphan"}
    (await jobs.kube.delete(jobs.objects("configmaps", f"jobgate-{uid}"), orphan)).ok()
    mark.touch()
    await jobs.until("calm", "Succeeded")
    assert (await jobs.replica("calm"))["attempt"] == 1

"""Kueue with the configuration of strict_kueue.yaml: it manages all pods, and evicts jobs whose pods do not start, for
the first time or again.

`make test-cluster` runs these tests, and the lives of the kinds, with a Kueue of this configuration.
"""

from pathlib import Path

import pytest

from tests.behaviour.client import Jobs
from tests.behaviour.manifests import job, until_marked
from tests.behaviour.queues.kueue import Queues, queued, requesting, until_history

pytestmark = pytest.mark.timeout(600)


async def require_strict(jobs: Jobs) -> None:
    """Skip the test if Kueue gates no pod of a namespace without a LocalQueue `default`."""
    container = {"name": "main", "image": "busybox"}
    pod = {"metadata": {"name": "probe"}, "spec": {"containers": [container]}}
    answer = (await jobs.kube.post(jobs.objects("pods"), pod, dryRun="All")).ok()
    if not answer["spec"].get("schedulingGates"):
        pytest.skip("the cluster has no Kueue with the configuration strict_kueue.yaml: run `make test-cluster`")


async def test_a_job_whose_pods_do_not_start_is_queued_again_and_then_paused(queues: Queues) -> None:
    jobs = queues.jobs
    await require_strict(jobs)
    # Kueue compares only labels that some flavor has, and no node has this one.
    nowhere = requesting(nodeSelector={"example.com/node": "none"})  # one pod is no gang, whose reason is another one
    uid = (await jobs.submit(queued(job("stuck", nowhere), "team")))["uid"]
    await jobs.pending("stuck", "Unschedulable")
    row = await until_history(jobs, "stuck", "Evicting")
    assert row["message"].startswith("PodsReadyTimeout: Exceeded the PodsReady timeout"), row
    status = await jobs.until("stuck", "Paused")
    assert (status["reason"], "number of re-queuing retries" in status["message"]) == ("Deactivated", True), status
    assert (await jobs.reasons("stuck")).count("Evicting") == 2
    assert [one["attempt"] for one in (await jobs.replicas("stuck")).values()] == [2]
    await queues.until_unused()
    assert await jobs.of_job("pods", uid) == []

    await jobs.resume("stuck")
    await jobs.pending("stuck", "Unschedulable")
    await jobs.delete("stuck")
    await queues.until_nothing_left()


async def label_nodes(jobs: Jobs, label: str, value: str | None) -> None:
    for node in (await jobs.kube.get("/api/v1/nodes")).ok()["items"]:
        patch = {"metadata": {"labels": {label: value}}}
        (await jobs.kube.patch(f"/api/v1/nodes/{node['metadata']['name']}", patch)).ok()


async def test_a_job_whose_replica_does_not_start_again_is_queued_again(queues: Queues, tmp_path: Path) -> None:
    jobs, mark, label = queues.jobs, tmp_path / "go", f"example.com/{queues.name}"
    await require_strict(jobs)
    await label_nodes(jobs, label, "here")
    script = until_marked(mark, f"mv {mark} {mark}.done && exit 1; exec sleep 600")
    worker = requesting(script, replicas=2, policy="Always", nodeSelector={label: "here"})
    uid = (await jobs.submit(queued(job("lost", worker), "team")))["uid"]
    await jobs.until("lost", "Running")
    await queues.until_condition(uid, "PodsReady")
    await label_nodes(jobs, label, None)
    mark.touch()
    row = await until_history(jobs, "lost", "Evicting")
    assert row["message"].startswith("PodsReadyTimeout: Exceeded the PodsReady timeout"), row
    await label_nodes(jobs, label, "here")
    await jobs.until("lost", "Running")
    await queues.until_condition(uid, "PodsReady")
    assert sum(one["restartCount"] for one in (await jobs.replicas("lost")).values()) == 1
    await label_nodes(jobs, label, None)
    await jobs.delete("lost")
    await queues.until_nothing_left()


async def test_kueue_queues_the_pods_of_a_job_without_a_queue_and_the_job_says_so(queues: Queues) -> None:
    jobs = queues.jobs
    await require_strict(jobs)
    await queues.submit("plain", "exit 0", queue=None)
    reason = await jobs.pending("plain", "SchedulingGated")
    assert "name a queue in the label kueue.x-k8s.io/queue-name" in reason["message"]
    await jobs.delete("plain")
    await queues.until_nothing_left()

"""Jobs whose quota Kueue requires, or whose Workload an administrator deactivates or deletes."""

import pytest

from tests.behaviour.manifests import job
from tests.behaviour.queues.kueue import Queues, is_paused_by_deactivation, queued, requesting, until_history

pytestmark = pytest.mark.timeout(600)


async def test_a_preempted_job_stops_waits_and_runs_again(queues: Queues) -> None:
    jobs = queues.jobs
    low = await queues.submit("low", replicas=2)
    await jobs.until("low", "Running")
    high = await queues.submit("high", replicas=2, high=True)
    await jobs.until("low", "Queued")
    await jobs.until("high", "Running")
    assert await jobs.of_job("pods", low) == []
    assert (await queues.workload(high))["spec"]["priority"] == 1000
    row = await until_history(jobs, "low", "Evicting")
    assert row["message"].startswith("Preempted: Preempted to accommodate a workload")
    reason = await jobs.pending("low", "WaitingForQuota")
    assert reason["count"] == 2
    await queues.until_condition(low, "Requeued")
    # Kueue limits the time of all admissions together.
    assert "accumulatedPastExecutionTimeSeconds" in (await queues.workload(low))["status"]
    queue = (await jobs.status("low"))["queue"]
    assert (queue["name"], queue["admitted"], queue["admittedAt"]) == ("team", False, None)
    assert (queue["eviction"]["reason"], queue["eviction"]["preemptedBy"]) == ("Preempted", high)

    await jobs.cancel("high")
    assert (await jobs.until("low", "Running"))["queue"]["admittedAt"] is not None
    for replica in (await jobs.replicas("low")).values():
        assert replica["attempt"] == 2
    await jobs.delete("low")
    await jobs.delete("high")
    await queues.until_no_workload()
    await queues.until_unused()


async def test_replicas_that_outlive_their_job_leave_when_another_job_needs_their_quota(queues: Queues) -> None:
    jobs = queues.jobs
    worker, ps = requesting("exit 0"), requesting(kind="ps")
    manifest = job("low", worker, ps, successRules=[{"worker": [0]}], cleanUpPolicy="None")
    low = str((await jobs.submit(queued(manifest, "team")))["uid"])
    # The worker may end before the other replica has started.
    await jobs.until_status("low", lambda found: (found["phase"], found["stillRunning"]) == ("Succeeded", 1))
    # That of the worker is free.
    await queues.submit("next", "exit 0")
    await jobs.until("next", "Succeeded")

    high = await queues.submit("high", "exit 0", replicas=2, high=True)
    await jobs.until("high", "Succeeded")
    status = await jobs.until_status("low", lambda found: found["stillRunning"] == 0)
    assert (status["phase"], status["queue"]["eviction"]["preemptedBy"]) == ("Succeeded", high)
    await queues.until_condition(low, "Finished")
    for name in ("low", "next", "high"):
        await jobs.delete(name)
    await queues.until_nothing_left()


async def test_a_deactivated_job_is_paused_until_it_is_resumed(queues: Queues) -> None:
    jobs = queues.jobs
    uid = await queues.submit("off")
    await jobs.until("off", "Running")
    (await jobs.kube.patch(queues.path(uid), {"spec": {"active": False}})).ok()
    await jobs.until_status("off", is_paused_by_deactivation)
    await queues.until_condition(uid, "QuotaReserved", "False")
    await queues.until_unused()
    await jobs.resume("off")
    await jobs.until("off", "Running")
    await jobs.delete("off")
    await queues.until_no_workload()


async def test_an_administrator_can_activate_a_job_again(queues: Queues) -> None:
    jobs = queues.jobs
    uid = await queues.submit("back")
    await jobs.until("back", "Running")
    (await jobs.kube.patch(queues.path(uid), {"spec": {"active": False}})).ok()
    await jobs.until("back", "Paused")
    (await jobs.kube.patch(queues.path(uid), {"spec": {"active": True}})).ok()
    await jobs.until("back", "Running")
    await jobs.delete("back")
    await queues.until_no_workload()


async def test_a_deleted_workload_is_made_again(queues: Queues) -> None:
    jobs = queues.jobs
    uid = await queues.submit("lost")
    await jobs.until("lost", "Running")
    before = (await queues.workload(uid))["metadata"]["uid"]
    (await jobs.kube.delete(queues.path(uid))).ok()
    await queues.workload(uid, lambda body: body["metadata"]["uid"] != before)
    await jobs.until("lost", "Running")
    assert (await jobs.replica("lost"))["attempt"] == 2
    await jobs.delete("lost")
    await queues.until_no_workload()


async def test_a_workload_without_its_labels_gets_them_back(queues: Queues) -> None:
    jobs, without = queues.jobs, {"metadata": {"labels": None}}
    uid = await queues.submit("bare", replicas=2)
    await jobs.until("bare", "Running")
    before = (await queues.workload(uid))["metadata"]["labels"]
    waiting = await queues.submit("waiting")
    await jobs.until_status("waiting", lambda status: status["reason"] == "WaitingForQuota")
    for each in (uid, waiting):
        (await jobs.kube.patch(queues.path(each), without)).ok()
        await queues.workload(each, lambda body: body["metadata"].get("labels", {}).keys() >= before.keys())
    assert (await jobs.replica("bare"))["attempt"] == 1, "it runs on"
    await jobs.delete("bare")
    await jobs.until("waiting", "Running")
    (await jobs.kube.patch(queues.path(waiting), without)).ok()
    await jobs.delete("waiting")
    await queues.until_nothing_left()

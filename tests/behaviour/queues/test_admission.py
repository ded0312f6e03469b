"""The life of a job with a queue: it waits, is admitted, runs, ends, and leaves nothing."""

from functools import partial
from pathlib import Path

import pytest

from app.domain.queueing.schema import SCHEMA, most_pod_sets_of
from tests.behaviour.client import DEADLINE, Body
from tests.behaviour.manifests import job, until_marked
from tests.behaviour.queues.kueue import NODE_LABEL, TOLERATION, Queues, condition, queued, requesting
from tests.support.clusters.cluster import require_real
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)


async def test_a_job_waits_until_another_one_ends(queues: Queues, tmp_path: Path) -> None:
    jobs, mark = queues.jobs, tmp_path / "go"
    first = await queues.submit("first", until_marked(mark, "exit 0"), replicas=2)
    await jobs.until("first", "Running")
    pod = await jobs.pod("first-worker-1")
    assert pod["spec"]["nodeSelector"] == NODE_LABEL
    assert TOLERATION in pod["spec"]["tolerations"]
    # Kueue captures no pods here, so nothing must be removed from them.
    assert "kueue.x-k8s.io/pod-suspending-parent" not in pod["metadata"].get("annotations", {})
    await queues.until_condition(first, "PodsReady")
    workload = await queues.workload(first)
    assert workload["spec"]["podSets"][0]["count"] == 2
    assert workload["spec"]["priority"] == 0

    second = await queues.submit("second", "exit 0", replicas=2)
    reason = await jobs.pending("second", "WaitingForQuota")
    assert "insufficient unused quota for cpu" in reason["message"]
    status = await jobs.status("second")
    assert (status["phase"], status["reason"]) == ("Queued", "WaitingForQuota")
    assert reason["count"] == 2
    assert await jobs.of_job("pods", second) == []

    mark.touch()
    await jobs.until("first", "Succeeded")
    await jobs.until("second", "Succeeded")
    for uid in (first, second):
        ended = await queues.workload(uid, lambda body: not body["metadata"].get("finalizers"))
        assert condition(ended, "Finished")["reason"] == "Succeeded"
    await queues.until_unused()
    for name in ("first", "second"):
        await jobs.delete(name)
    await queues.until_no_workload()


async def test_a_waiting_job_can_be_paused_resumed_cancelled_and_deleted(queues: Queues) -> None:
    jobs = queues.jobs
    running = await queues.submit("running", replicas=2)
    await jobs.until("running", "Running")
    waiting = await queues.submit("waiting")
    await jobs.pending("waiting", "WaitingForQuota")
    await jobs.pause("waiting")
    await jobs.until("waiting", "Paused")
    await jobs.kube.gone(queues.path(waiting))
    await jobs.resume("waiting")
    await jobs.pending("waiting", "WaitingForQuota")

    # A pause of the running job gives its quota to the next one, and its resume waits.
    await jobs.pause("running")
    await jobs.until("running", "Paused")
    await jobs.kube.gone(queues.path(running))
    await jobs.until("waiting", "Running")
    await jobs.resume("running")
    await jobs.pending("running", "WaitingForQuota")
    await jobs.cancel("waiting")
    await jobs.until("waiting", "Cancelled")
    await jobs.until("running", "Running")

    last = await queues.submit("last")
    await jobs.pending("last", "WaitingForQuota")
    await jobs.delete("last")
    await jobs.kube.gone(queues.path(last))
    await jobs.delete("running")
    await jobs.delete("waiting")
    await queues.until_no_workload()
    await queues.until_unused()


async def test_a_job_without_a_queue_uses_the_default_one_of_its_namespace(queues: Queues) -> None:
    jobs = queues.jobs
    await queues.add_local("default")
    uid = await queues.submit("plain", "exit 0", queue=None, replicas=2)
    await jobs.until("plain", "Succeeded")
    workload = await queues.workload(uid)
    assert workload["spec"]["queueName"] == "default"
    assert [pod["spec"].get("schedulingGates") for pod in await jobs.of_job("pods", uid)] == [None, None]
    await jobs.delete("plain")
    await queues.until_no_workload()
    await jobs.until_objects("pods", uid, lambda pods: not pods)


@pytest.mark.parametrize(
    ("queue", "cpu", "code"), [("nowhere", "1", "QueueMissing"), ("team", "64", "ExceedsMaxQuota")]
)
async def test_the_reason_of_a_wait_is_named(queues: Queues, queue: str, cpu: str, code: str) -> None:
    jobs = queues.jobs
    uid = await queues.submit("wrong", queue=queue, cpu=cpu)
    await jobs.pending("wrong", code)
    assert (await jobs.status("wrong"))["phase"] == "Queued"
    await jobs.cancel("wrong")
    await jobs.until("wrong", "Cancelled")
    await queues.workload(uid, lambda body: not body["metadata"].get("finalizers"))
    await jobs.delete("wrong")
    await queues.until_no_workload()


async def test_ended_replicas_give_their_quota_back(queues: Queues, tmp_path: Path) -> None:
    jobs, mark = queues.jobs, tmp_path / "go"
    script = f'test "$HOSTNAME" = partly-worker-0 || exit 0; {until_marked(mark, "exit 0")}'
    uid = await queues.submit("partly", f"HOSTNAME=$(hostname); {script}", replicas=2)
    reclaimed = [{"name": "worker", "count": 1}]
    await queues.workload(uid, lambda body: body.get("status", {}).get("reclaimablePods") == reclaimed)
    await queues.submit("next")
    await jobs.until("next", "Running")
    # After a pause, the job needs quota only for the replica that has not ended.
    await jobs.pause("partly")
    await jobs.kube.gone(queues.path(uid))
    await jobs.resume("partly")
    await jobs.until("partly", "Running")
    workload = await queues.workload(uid, lambda body: body.get("status", {}).get("reclaimablePods") == reclaimed)
    assert workload["status"]["admission"]["podSetAssignments"][0]["count"] == 1
    mark.touch()
    await jobs.until("partly", "Succeeded")
    await jobs.delete("partly")
    await jobs.delete("next")
    await queues.until_no_workload()


def many(name: str, count: int, *, paused: bool = False) -> Body:
    """A job of so many different tasks."""
    found = job(name, *(requesting("exit 0", kind=f"t{number}", cpu=f"{number + 1}m") for number in range(count)))
    found["spec"]["runMode"] = {"pause": {"enabled": paused}}
    return found


@pytest.mark.parametrize("queue", ["team", None])
async def test_a_job_of_more_pod_sets_than_kueue_accepts_is_refused(queues: Queues, queue: str | None) -> None:
    jobs = queues.jobs
    await queues.add_local("default")
    for name in ("team", "default"):
        await until(
            partial(jobs.http.get, f"/api/v1/namespaces/{jobs.namespace}/queues/{name}"),
            lambda answer: answer.status_code == 200,
            what="the controller has recorded the queue",
            within=DEADLINE,
        )
    most = most_pod_sets_of((await jobs.kube.get(SCHEMA)).ok())
    assert most in (8, 18), "Kueue 0.15 accepts 8, and 0.19 accepts 18"
    answer = await jobs.http.post(
        f"/api/v1/namespaces/{jobs.namespace}/jobs", json=queued(many("too-many", most + 1), queue)
    )
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["code"], error["pointer"]) == (422, "TooManyPodSets", "/spec")
    assert error["accepted"] == f"{most} or fewer in a job with a queue"
    uid = (await jobs.submit(queued(many("as-many", most), queue)))["uid"]
    assert len((await queues.workload(uid))["spec"]["podSets"]) == most
    await jobs.delete("as-many")
    await queues.until_nothing_left()


async def test_a_job_of_more_pod_sets_than_kueue_accepts_fails_if_it_gets_its_queue_later(queues: Queues) -> None:
    jobs = queues.jobs
    await jobs.submit(many("many", 19, paused=True))
    await jobs.until("many", "Paused")
    await queues.add_local("default")
    await jobs.resume("many")
    status = await jobs.until("many", "Failed")
    assert status["reason"] == "RefusedByCluster"
    assert "spec.podSets: Too many: 19: must have at most" in status["message"]
    await jobs.delete("many")


async def test_a_limit_counts_although_the_namespace_has_defaults_of_requests(queues: Queues) -> None:
    jobs = queues.jobs
    require_real(jobs.kube.cluster, "LimitRanges")
    limits = {"type": "Container", "default": {"cpu": "8"}, "defaultRequest": {"cpu": "100m"}}
    path = f"/api/v1/namespaces/{jobs.namespace}/limitranges"
    (await jobs.kube.post(path, {"metadata": {"name": "defaults"}, "spec": {"limits": [limits]}})).ok()
    worker = requesting()
    worker["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "3"}}
    uid = (await jobs.submit(queued(job("large", worker), "team")))["uid"]
    await jobs.pending("large", "ExceedsMaxQuota")
    assert await jobs.of_job("pods", uid) == []
    await jobs.delete("large")
    await queues.until_nothing_left()

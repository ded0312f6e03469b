"""An admitted job that is scaled up runs on while its further replicas wait in the queue."""

from typing import Any

import pytest

from app.base.clock import SystemClock
from tests.behaviour.client import DEADLINE, Body, Jobs
from tests.behaviour.queues.kueue import Queues, condition, elastic_job, queued, until_history
from tests.behaviour.scaling.elastic import leaves, shell, training_job
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)


async def start(queues: Queues, name: str) -> str:
    uid = str((await queues.jobs.submit(elastic_job(name)))["uid"])
    await queues.jobs.until(name, "Running")
    return uid


async def waiting(jobs: Jobs, name: str, count: int) -> Body:
    """The reason why so many further replicas wait."""

    def waits(body: Body) -> bool:
        reasons: list[Any] = body["pendingReasons"]
        return [(one["code"], one["count"]) for one in reasons] == [("WaitingForQuota", count)]

    return await jobs.until_status(name, waits)


async def test_the_further_replicas_of_a_job_wait_start_and_are_preempted_alone(queues: Queues) -> None:
    jobs = queues.jobs
    await queues.submit("other")
    await jobs.until("other", "Running")
    uid = await start(queues, "grows")
    first = await jobs.pod_uids(uid)
    # Times of conditions have seconds, and the further Workload must be the one that is admitted last.
    admitted_at = condition(await queues.workload(uid), "QuotaReserved")["lastTransitionTime"]
    await until(lambda: f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}" > admitted_at, what="the next second")

    await jobs.scale("grows", 3, task="collector")
    status = await waiting(jobs, "grows", 2)
    assert (status["phase"], await jobs.pod_uids(uid)) == ("Scaling", first)
    assert (await jobs.scale_records("grows"))[-1]["outcome"] is None
    further = await queues.workload(f"{uid}-1")
    assert [(one["name"], one["count"]) for one in further["spec"]["podSets"]] == [("collector", 2)]
    await jobs.delete("other")
    assert (await jobs.until_settled("grows", 1))["outcome"] == "Reached"
    await jobs.until("grows", "Running")
    assert first.items() < (await jobs.pod_uids(uid)).items()
    await queues.until_condition(f"{uid}-1", "PodsReady")

    # Kueue preempts what was admitted last.
    await queues.submit("high", high=True)
    await jobs.until("high", "Running")
    assert (await until_history(jobs, "grows", "Evicting"))["message"].startswith("Preempted: ")
    await waiting(jobs, "grows", 2)
    await jobs.until_objects("pods", uid, lambda pods: {one["metadata"]["uid"] for one in pods} == set(first.values()))
    await queues.until_condition(f"{uid}-1", "Requeued")
    await jobs.cancel("high")
    await jobs.until("grows", "Running")
    assert (await jobs.replica("grows", "collector-2"))["attempt"] == 2
    assert first.items() < (await jobs.pod_uids(uid)).items()
    for name in ("high", "grows"):
        await jobs.delete(name)
    await queues.until_no_workload()
    await queues.until_unused()


async def test_what_is_scaled_down_leaves_its_quota_to_others(queues: Queues) -> None:
    jobs = queues.jobs
    uid = await start(queues, "shrinks")
    await jobs.scale("shrinks", 3, task="collector")
    await jobs.until_settled("shrinks", 1)
    other = await queues.submit("other")
    await jobs.pending("other", "WaitingForQuota")
    await jobs.scale("shrinks", 2, task="collector")
    await queues.workload(f"{uid}-1", lambda body: body["status"].get("reclaimablePods"))
    await jobs.scale("shrinks", 1, task="collector")
    await jobs.kube.gone(queues.path(f"{uid}-1"))
    await jobs.until("other", "Running")

    # What waits is withdrawn.
    await jobs.scale("shrinks", 2, task="collector")
    await waiting(jobs, "shrinks", 1)
    await jobs.scale("shrinks", 1, task="collector")
    await jobs.kube.gone(queues.path(f"{uid}-1"))
    await jobs.until("shrinks", "Running")
    await jobs.scale("shrinks", 3, task="collector")
    await waiting(jobs, "shrinks", 2)
    await jobs.cancel("shrinks")
    await jobs.until("shrinks", "Cancelled")
    for number in ("", "-1"):
        await queues.workload(uid + number, lambda body: not body["metadata"].get("finalizers"))
    await jobs.delete("other")
    await queues.until_unused()
    await jobs.kube.gone(queues.path(other))
    await jobs.delete("shrinks")
    await queues.until_no_workload()


async def test_a_job_that_is_evicted_is_queued_again_as_one_workload(queues: Queues) -> None:
    jobs = queues.jobs
    uid = await start(queues, "whole")
    await jobs.scale("whole", 3, task="collector")
    await jobs.until_settled("whole", 1)
    await jobs.until("whole", "Running")
    # The deletion of a further Workload stops only its replicas.
    before = (await queues.workload(f"{uid}-1"))["metadata"]["uid"]
    (await jobs.kube.delete(queues.path(f"{uid}-1"))).ok()
    await queues.workload(f"{uid}-1", lambda body: body["metadata"]["uid"] != before)
    await jobs.until("whole", "Running")
    assert (await jobs.replica("whole", "collector-0"))["attempt"] == 1

    (await jobs.kube.patch(queues.path(uid), {"spec": {"active": False}})).ok()
    await jobs.until("whole", "Paused")
    await jobs.kube.gone(queues.path(f"{uid}-1"))
    await queues.until_unused()
    (await jobs.kube.patch(queues.path(uid), {"spec": {"active": True}})).ok()
    await jobs.until("whole", "Running")
    assert len(await jobs.pod_uids(uid)) == 4
    counts = {one["name"]: one["count"] for one in (await queues.workload(uid))["spec"]["podSets"]}
    assert counts == {"learner": 1, "collector": 3}
    await jobs.delete("whole")
    await queues.until_no_workload()
    await queues.until_unused()


async def test_a_training_job_grows_by_its_trainers_when_they_are_admitted(wide_queues: Queues) -> None:
    queues, jobs = wide_queues, wide_queues.jobs
    await queues.cover_memory()  # the master requests some, and about a CPU
    await queues.submit("other", cpu="2")
    manifest = training_job("trains", shell(leaves()))
    manifest["spec"]["trainer"]["resources"] = {"requests": {"cpu": "500m"}}
    uid = str((await jobs.submit(queued(manifest, "team")))["uid"])
    for name in ("other", "trains"):
        await jobs.until(name, "Running")
    first = await jobs.pod_uids(uid)

    await jobs.scale("trains", 3)
    status = await waiting(jobs, "trains", 2)
    assert (status["phase"], await jobs.pod_uids(uid)) == ("Scaling", first)
    further = await queues.workload(f"{uid}-1")
    assert [(one["name"], one["count"]) for one in further["spec"]["podSets"]] == [("trainer", 2)]
    await jobs.delete("other")
    assert (await jobs.until_settled("trains", 1))["outcome"] == "Reached"
    await jobs.until("trains", "Running")
    grown = await jobs.pod_uids(uid)
    assert first.items() < grown.items()
    assert len(grown) == len(first) + 2
    hosts = (await jobs.kube.get(jobs.objects("configmaps", "trains-hosts"))).ok()["data"]["trainer.hosts"]
    assert len(hosts.splitlines()) == 1 + 3

    await jobs.scale("trains", 1)
    assert (await jobs.until_settled("trains", 2))["outcome"] == "Reached"
    await jobs.kube.gone(queues.path(f"{uid}-1"), within=DEADLINE)
    # An ended pod holds no quota, and is released later.
    await jobs.until_objects("pods", uid, lambda pods: {pod["metadata"]["uid"] for pod in pods} == set(first.values()))
    await jobs.delete("trains")
    await queues.until_nothing_left()

"""A life of each kind with a queue: it waits, loses its quota in every way, is resumed, cancelled, retried, deleted."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.behaviour.client import Jobs
from tests.behaviour.manifests import Body, container, job, task, until_marked
from tests.behaviour.queues.kueue import Queues, condition, is_paused_by_deactivation, queued, until_history
from tests.behaviour.scaling.elastic import shell

pytestmark = pytest.mark.timeout(600)

CPUS = 4  # room for one job of each kind, and not for two
REQUESTS = {"requests": {"cpu": "1"}}
GATES = {"kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"}
POD_FINALIZER = "kueue.x-k8s.io/managed"


def replicas_of(name: str, script: str) -> Body:
    spec = {"containers": [container(script, name, resources=REQUESTS)], "terminationGracePeriodSeconds": 1}
    return {"template": {"spec": {**spec, "automountServiceAccountToken": False}}}


def generic_job(name: str, script: str) -> Body:
    tasks = (task(script, "ps"), task(script, "worker", replicas=2))
    for one in tasks:
        one["template"]["spec"]["containers"][0]["resources"] = REQUESTS
    return job(name, *tasks)


def training_job(name: str, script: str) -> Body:
    role = {"entrypoint": shell(script), "resources": REQUESTS, "grace_period_seconds": 1}
    return {
        "apiVersion": "paddlepaddle.org/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {
            "image": "busybox",
            "pserver": {**role, "min-instance": 1, "max-instance": 1},
            "trainer": {**role, "min-instance": 2, "max-instance": 2},
        },
    }


def mx_job(name: str, script: str) -> Body:
    roles = ("SCHEDULER", "SERVER", "WORKER")
    return {
        "apiVersion": "mxnet.mlkube.io/v1beta1",
        "kind": "MxJob",
        "metadata": {"name": name},
        "spec": {
            "jobMode": "dist",
            "replicaSpecs": [{"mxReplicaType": role, **replicas_of("mxnet", script)} for role in roles],
        },
    }


def di_job(name: str, script: str) -> Body:
    tasks = [("learner", 1), ("collector", 2)]
    return {
        "apiVersion": "diengine.opendilab.org/v2alpha1",
        "kind": "DIJob",
        "metadata": {"name": name},
        "spec": {
            "backoffLimit": 0,
            "tasks": [{"type": kind, "replicas": size, **replicas_of("di-container", script)} for kind, size in tasks],
        },
    }


async def is_admitted(queues: Queues, name: str, uid: str) -> None:
    """Wait until the job runs, and check that nothing of Kueue holds its pods."""
    jobs = queues.jobs
    await jobs.until(name, "Running")
    await queues.until_condition(uid, "PodsReady")
    pods = await jobs.of_job("pods", uid)
    assert len(pods) == 3
    for pod in pods:
        assert not {gate["name"] for gate in pod["spec"].get("schedulingGates", ())} & GATES
        assert POD_FINALIZER not in pod["metadata"].get("finalizers", ())
        assert pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-suspending-parent"] == f"jobgate-{uid}"


async def waits(queues: Queues, name: str, uid: str) -> None:
    """Check that the job waits for quota without a pod."""
    await queues.jobs.pending(name, "WaitingForQuota")
    assert (await queues.jobs.status(name))["phase"] == "Queued"
    assert await queues.jobs.of_job("pods", uid) == []


async def is_preempted(queues: Queues, name: str, uid: str) -> None:
    jobs = queues.jobs
    await queues.submit("high", replicas=CPUS, high=True)
    await jobs.until("high", "Running")
    await waits(queues, name, uid)
    row = await until_history(jobs, name, "Evicting")
    assert row["message"].startswith("Preempted: Preempted to accommodate a workload")
    await jobs.delete("high")
    await is_admitted(queues, name, uid)


async def is_deactivated(queues: Queues, name: str, uid: str) -> None:
    jobs = queues.jobs
    (await jobs.kube.patch(queues.path(uid), {"spec": {"active": False}})).ok()
    await jobs.until_status(name, is_paused_by_deactivation)
    await queues.until_condition(uid, "QuotaReserved", "False")
    await queues.until_unused()
    assert await jobs.of_job("pods", uid) == []
    await jobs.resume(name)
    await is_admitted(queues, name, uid)


async def loses_its_workload(queues: Queues, name: str, uid: str) -> None:
    before = (await queues.workload(uid))["metadata"]["uid"]
    (await queues.jobs.kube.delete(queues.path(uid))).ok()
    await queues.workload(uid, lambda body: body["metadata"]["uid"] != before)
    await is_admitted(queues, name, uid)


async def is_drained(queues: Queues, name: str, uid: str) -> None:
    await queues.stop("HoldAndDrain")
    await queues.jobs.pending(name, "QueueStopped")
    await queues.until_unused()
    assert await queues.jobs.of_job("pods", uid) == []
    await queues.stop("None")
    await is_admitted(queues, name, uid)


async def is_paused(queues: Queues, name: str, uid: str) -> None:
    jobs = queues.jobs
    await jobs.pause(name)
    await jobs.until(name, "Paused")
    await jobs.kube.gone(queues.path(uid))
    await queues.until_unused()
    await jobs.resume(name)
    await is_admitted(queues, name, uid)


async def is_cancelled(queues: Queues, name: str, uid: str) -> None:
    await queues.jobs.cancel(name)
    await queues.jobs.until(name, "Cancelled")
    await is_released(queues, uid)


async def is_released(queues: Queues, uid: str) -> Body:
    ended = await queues.workload(uid, lambda body: not body["metadata"].get("finalizers"))
    await queues.until_unused()
    return condition(ended, "Finished")


async def retry(jobs: Jobs, name: str, as_name: str) -> str:
    answer = await jobs.http.post(jobs.path(name, "retry"), json={"name": as_name})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["uid"])


@pytest.mark.parametrize("manifest", [generic_job, training_job, mx_job, di_job])
async def test_a_life_of_each_kind_leaves_nothing(
    wide_queues: Queues, manifest: Callable[[str, str], Body], tmp_path: Path
) -> None:
    queues, jobs, mark = wide_queues, wide_queues.jobs, tmp_path / "go"
    await queues.submit("before", replicas=CPUS)
    await jobs.until("before", "Running")
    body = queued(manifest("life", until_marked(mark, "exit 0")), "team")
    uid = (await jobs.submit(body))["uid"]
    await waits(queues, "life", uid)
    await jobs.cancel("before")
    await is_admitted(queues, "life", uid)
    for moment in (is_preempted, is_deactivated, loses_its_workload, is_drained):
        await moment(queues, "life", uid)
    if manifest is generic_job:
        await is_paused(queues, "life", uid)
    for replica in (await jobs.replicas("life")).values():
        assert (replica["restartCount"], replica["disruptions"]) == (0, 0)
    await is_cancelled(queues, "life", uid)

    deleted = await retry(jobs, "life", "deleted")
    await is_admitted(queues, "deleted", deleted)
    await jobs.delete("deleted")
    await jobs.kube.gone(queues.path(deleted))
    last = await retry(jobs, "life", "last")
    await is_admitted(queues, "last", last)
    mark.touch()
    await jobs.until("last", "Succeeded")
    assert (await is_released(queues, last))["reason"] == "Succeeded"
    for name in ("before", "life", "last"):
        await jobs.delete(name)
    await queues.until_nothing_left()

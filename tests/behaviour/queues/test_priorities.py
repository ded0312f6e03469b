"""The priority of a job in its queue: that of a label, or of the class of its pods."""

import pytest

from tests.behaviour.manifests import job
from tests.behaviour.queues.kueue import GROUP, Queues, queued, requesting

pytestmark = pytest.mark.timeout(600)
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def test_an_edit_of_the_label_gives_a_waiting_job_another_priority(queues: Queues) -> None:
    jobs = queues.jobs
    await queues.submit("first", replicas=2)
    await jobs.until("first", "Running")
    uid = await queues.submit("second", replicas=2)
    await jobs.pending("second", "WaitingForQuota")

    label = f"{GROUP}/priority-class"
    await jobs.ask("PATCH", "second", json={"metadata": {"labels": {label: "missing"}}})
    reason = await jobs.pending("second", "PriorityClassMissing")
    assert reason["message"] == "the cluster has no WorkloadPriorityClass missing"
    await jobs.ask("PATCH", "second", json={"metadata": {"labels": {label: queues.priority_class}}})
    await jobs.until("second", "Running")
    spec = (await queues.workload(uid))["spec"]
    assert (spec["priority"], spec["priorityClassRef"]["name"]) == (1000, queues.priority_class)
    await jobs.until("first", "Queued")
    for name in ("first", "second"):
        await jobs.delete(name)
    await queues.until_no_workload()


async def test_the_class_of_the_pods_is_the_priority_of_the_job(queues: Queues) -> None:
    jobs, name = queues.jobs, f"{queues.name}-pods"
    if (await jobs.kube.get(CLASSES)).status != 200:
        pytest.skip("the cluster serves no PriorityClasses: run `make test-cluster`")
    manifest = job("classed", requesting("exit 0", priorityClassName=name))
    uid = (await jobs.submit(queued(manifest, "team")))["uid"]
    reason = await jobs.pending("classed", "PriorityClassMissing")
    assert reason["message"] == f"the cluster has no PriorityClass {name}"
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 70}
    (await jobs.kube.post(CLASSES, body)).ok()
    try:
        await jobs.until("classed", "Succeeded")
        spec = (await queues.workload(uid))["spec"]
        wanted = {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": name}
        assert (spec["priority"], spec["priorityClassRef"]) == (70, wanted)
        await jobs.delete("classed")
        await queues.until_no_workload()
    finally:
        await jobs.kube.delete(f"{CLASSES}/{name}")

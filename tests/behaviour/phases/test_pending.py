"""Pending reasons: one code for each cause, with the message of the cluster. A job continues when it is gone."""

import re
from typing import Any

import pytest

from tests.behaviour.client import Body, Jobs
from tests.behaviour.manifests import container, job, task
from tests.support.clusters.cluster import require_real


async def test_no_node_fits_and_the_scheduler_says_why(jobs: Jobs) -> None:
    resources = {"requests": {"cpu": "4000"}}
    await jobs.submit(job("big", task(replicas=2, containers=[container(resources=resources)])))

    def unplaced(status: Body) -> list[Body]:
        # The pods of a gang can have different messages.
        return [reason for reason in status["pendingReasons"] if reason["code"].endswith("Unschedulable")]

    status = await jobs.until_status("big", lambda status: sum(reason["count"] for reason in unplaced(status)) == 2)
    assert status["phase"] == "Creating"
    assert status["aggregate"]["creating"] == 2
    reasons = unplaced(status)
    assert any("Insufficient cpu" in reason["message"] for reason in reasons)
    assert sorted(name for reason in reasons for name in reason["replicas"]) == ["worker[0]", "worker[1]"]
    assert all(reason["since"] for reason in reasons)


async def test_a_pod_with_a_gate_waits_for_somebody_to_open_it(jobs: Jobs) -> None:
    require_real(jobs.kube.cluster, "scheduling gates")
    await jobs.submit(job("gated", task("exit 0", schedulingGates=[{"name": "example.com/budget"}])))
    await jobs.pending("gated", "SchedulingGated")
    path = jobs.objects("pods", "gated-worker-0")
    patch = [{"op": "remove", "path": "/spec/schedulingGates"}]
    (await jobs.kube.patch(path, patch, "application/json-patch+json")).ok()
    await jobs.until("gated", "Succeeded")


async def test_a_scheduler_that_nobody_runs_is_suspected(jobs: Jobs) -> None:
    await jobs.submit(job("alien", task(schedulerName="nobody")))
    await jobs.pending("alien", "NotScheduled")


async def test_an_image_that_cannot_be_pulled(jobs: Jobs) -> None:
    nothing = {"name": "main", "image": "registry.example/none:1"}
    await jobs.submit(job("image", task(containers=[nothing])))
    reason = await jobs.pending("image", "ImagePull")
    assert "main" in reason["message"]
    status = await jobs.until("image", "Pending")
    assert status["aggregate"]["pending"] == 1


async def test_a_command_in_an_unknown_image_does_not_run(jobs: Jobs) -> None:
    unknown = container("exit 0") | {"image": "registry.example/pyhton:3.12"}
    await jobs.submit(job("misspelt", task(containers=[unknown])))
    reason = await jobs.pending("misspelt", "ImagePull")
    assert "'registry.example/pyhton:3.12' matches no entry of its images file" in reason["message"]
    assert (await jobs.until("misspelt", "Pending"))["aggregate"]["succeeded"] == 0


async def test_an_image_name_that_is_none(jobs: Jobs) -> None:
    play = [{"waiting": {"reason": "InvalidImageName", "message": 'couldn\'t parse image name "A:b:c"'}}]
    await jobs.submit(job("name", task(play=play)))
    reason = await jobs.pending("name", "InvalidImageName")
    assert 'couldn\'t parse image name "A:b:c"' in reason["message"]


@pytest.mark.parametrize(
    ("source", "kind", "data"),
    [
        ("configMapKeyRef", "configmaps", {"data": {"key": "value"}}),
        ("secretKeyRef", "secrets", {"data": {"key": "dmFsdWU="}}),
    ],
)
async def test_missing_configuration_is_named_and_waited_for(
    jobs: Jobs, source: str, kind: str, data: dict[str, Any]
) -> None:
    env = [{"name": "V", "valueFrom": {source: {"name": "settings", "key": "key"}}}]
    await jobs.submit(job("config", task(containers=[container("test $V = value", env=env)])))
    reason = await jobs.pending("config", "ContainerConfig")
    assert '"settings" not found' in reason["message"]
    (await jobs.kube.post(jobs.objects(kind), {"metadata": {"name": "settings"}, **data})).ok()
    await jobs.until("config", "Succeeded")


async def test_a_missing_volume_source_is_known_from_events(jobs: Jobs) -> None:
    volumes = [{"name": "data", "configMap": {"name": "data"}}]
    mounts = [{"name": "data", "mountPath": "/jobgate-test-data"}]
    await jobs.submit(job("volume", task(containers=[container("exit 0", volumeMounts=mounts)], volumes=volumes)))
    reason = await jobs.pending("volume", "Volume")
    assert '"data" not found' in reason["message"]
    (await jobs.kube.post(jobs.objects("configmaps"), {"metadata": {"name": "data"}, "data": {"a": "b"}})).ok()
    await jobs.until("volume", "Succeeded")


async def test_a_command_that_does_not_exist_is_told_when_it_ends(jobs: Jobs) -> None:
    missing = {"name": "main", "image": "busybox", "command": ["/no/such/program"]}
    await jobs.submit(job("command", task(containers=[missing])))
    await jobs.until("command", "Failed")
    replica = await jobs.replica("command")
    assert replica["reason"] == "StartError"
    assert "/no/such/program" in replica["message"]


async def test_init_containers_at_work_are_the_reason(jobs: Jobs) -> None:
    await jobs.submit(job("prepares", task(initContainers=[container("sleep 600", "fetch")])))
    reason = await jobs.pending("prepares", "Initializing")
    assert "fetch" in reason["message"]


async def test_a_restart_that_waits_is_a_reason(jobs: Jobs) -> None:
    """The third restart waits for over a second, long enough to be seen."""
    await jobs.submit(job("backoff", task("exit 1", policy="OnFailure", limit=6)))
    reason = await jobs.pending("backoff", "BackOff")
    assert re.match(r"attempt \d failed \(exit code 1, Error\).*; attempt \d (starts at|follows)", reason["message"])
    status = await jobs.until("backoff", "Failed", "Restarting")
    assert sum(status["aggregate"].values()) == 1


async def test_a_job_that_runs_has_no_pending_reasons(jobs: Jobs) -> None:
    await jobs.submit(job("fine"))
    status = await jobs.until("fine", "Running")
    assert status["pendingReasons"] == []
    assert status["startedAt"]

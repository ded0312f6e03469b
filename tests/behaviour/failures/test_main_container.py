"""A replica ends with its main container, and a container that outlives another is named."""

from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.client import Jobs
from tests.behaviour.manifests import container, job, task, until_marked

MAIN = "jobgate.dev/main-container"


def two_containers(script: str, **more: Any) -> dict[str, Any]:
    """A task with a sidecar that never ends, which a webhook may have injected."""
    return task(**more, containers=[container(name="agent"), container(script, "train")])


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
async def test_the_end_of_the_main_container_is_the_end_of_the_replica(jobs: Jobs, code: int, phase: str) -> None:
    manifest = job("main", two_containers(f"echo last words; exit {code}"), annotations={"main-container": "train"})
    uid = (await jobs.submit(manifest))["uid"]
    await jobs.until("main", phase)
    replica = await jobs.replica("main")
    assert (replica["phase"], replica["exitCode"]) == (phase, code)
    await jobs.until_pod_gone("main-worker-0")
    assert (await jobs.replica("main"))["phase"] == phase
    log = await jobs.log("main")
    assert (log.text, log.headers["Jobgate-Log-Container"]) == ("last words\n", "train")
    assert await jobs.names("pods", uid) == []


async def test_the_annotation_of_a_running_pod_is_not_needed(jobs: Jobs, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    one = two_containers(until_marked(mark, "exit 3"))
    await jobs.submit(job("hidden", one, annotations={"main-container": "train"}))
    await jobs.until("hidden", "Running")
    patch = {"metadata": {"annotations": {MAIN: None}}}
    (await jobs.kube.patch(jobs.objects("pods", "hidden-worker-0"), patch)).ok()
    mark.touch()
    await jobs.until("hidden", "Failed")
    assert (await jobs.replica("hidden"))["exitCode"] == 3
    await jobs.until_pod_gone("hidden-worker-0")


async def test_a_failed_main_container_restarts_the_replica(jobs: Jobs) -> None:
    one = two_containers("exit 3", policy="OnFailure", limit=1)
    one["template"]["metadata"] = {"annotations": {MAIN: "train"}}
    await jobs.submit(job("again", one))
    await jobs.until("again", "Failed")
    replica = await jobs.replica("again")
    assert (replica["attempt"], replica["restartCount"]) == (2, 1)
    assert [attempt["outcome"] for attempt in replica["attempts"]] == ["Failed", "Failed"]


async def test_a_container_that_outlives_another_is_named(jobs: Jobs) -> None:
    await jobs.submit(job("outlived", task(containers=[container("exit 3", "train"), container(name="istio-proxy")])))
    reason = await jobs.pending("outlived", "ContainerEnded")
    assert reason["message"].startswith("train exited with 3 at 2")
    assert reason["message"].endswith("; istio-proxy still runs")
    status = await jobs.status("outlived")
    assert (status["phase"], status["message"]) == (
        "Running",
        f"1 of 1 replicas are running; 1 with a fault: ContainerEnded: {reason['message']}",
    )


@pytest.mark.parametrize("place", ["manifest", "template"])
async def test_a_main_container_that_no_pod_has_is_refused(jobs: Jobs, place: str) -> None:
    one = two_containers("exit 0")
    annotations = {"main-container": "trian"} if place == "manifest" else None
    if place == "template":
        one["template"]["metadata"] = {"annotations": {MAIN: "trian"}}
    answer = await jobs.http.post(
        f"/api/v1/namespaces/{jobs.namespace}/jobs", json=job("wrong", one, annotations=annotations)
    )
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    base = "" if place == "manifest" else "/spec/replicaSpecs/0/template"
    assert error["pointer"] == f"{base}/metadata/annotations/jobgate.dev~1main-container"
    assert (error["code"], error["accepted"]) == ("UnknownContainer", "one of agent, train")

"""Every example, played as `jobgate demo` plays it, ends as expected and shows what it is for."""

import asyncio
from typing import Any

import pytest
import yaml
from typing_extensions import override

from app.bundled import bundled_directory
from app.demo.player import Player
from app.demo.queue import make_queue
from app.demo.stories import QUEUED, STORIES, Story
from app.k8s.connection import connect
from tests.e2e.user import DEADLINE, User
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.clusters.kueue import API
from tests.support.waiting import until


def named(example: str) -> Story:
    return next(story for story in STORIES if story.file.endswith(f"/{example}.yaml"))


class PatientPlayer(Player):
    """Pauses a job only after its program has installed its signal handler, which writes the checkpoint."""

    @override
    async def _call(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        if path.endswith("/pause"):
            logs = self._jobs + path.replace("/pause", "/logs")
            await until(
                lambda: self._client.get(logs),
                lambda log: "starting" in log.text,
                what="starting",
                within=DEADLINE,
            )
        return await super()._call(method, path, **given)


async def play(user: User, story: Story) -> list[str]:
    """Play the story, require its expected end, and return the printed lines."""
    printed: list[str] = []
    result = await PatientPlayer(user.http, user.namespace, lambda _, line: printed.append(line)).play(story)
    assert result.as_expected, f"{result}\n" + "\n".join(printed)
    return printed


async def test_distributed_training(user: User) -> None:
    printed = await play(user, named("distributed-training"))
    assert any(line.endswith("trained: it should be y = 3 x + 2") for line in printed)
    for rank in range(2):
        log = (await user.call("GET", f"/distributed-training/logs?task=worker&rank={rank}")).text
        assert "has reached distributed-training-chief-0" in log


async def test_flaky_keeps_the_log_of_its_first_attempt(user: User, api: KubeClient) -> None:
    await play(user, named("flaky"))
    uid = (await user.read("/flaky"))["uid"]
    await user.call("DELETE", "/flaky", status=202)
    pods = f"/api/v1/namespaces/{user.namespace}/pods"
    await api.eventually(pods, lambda found: not found["items"])
    replica = (await user.read("/flaky/replicas"))["items"][0]
    first, second = replica["attempts"]
    assert (first["exitCode"], second["exitCode"]) == (3, 0)
    assert replica["restartCount"] == 1
    for path in (f"{user.jobs}/flaky/logs", f"/api/v1/jobs/{uid}/logs"):
        kept = await user.http.get(path, params={"attempt": 1})
        assert "last words: the data set is not there yet" in kept.text
        assert kept.headers["Jobgate-Log-Source"] == "stored"
        assert (await user.http.get(path)).text.endswith("the data set is there now\n")


async def test_init_and_service_leaves_no_object_behind(user: User, api: KubeClient) -> None:
    printed = await play(user, named("init-and-service"))
    assert any("says: hello from the init container" in line for line in printed)
    await api.eventually(f"/api/v1/namespaces/{user.namespace}/pods", lambda found: not found["items"])
    assert (await user.call("GET", "/init-and-service/logs?task=client")).headers["Jobgate-Log-Source"] == "stored"


async def test_pausable(user: User) -> None:
    printed = await play(user, named("pausable"))
    logs = [line.partition("| ")[2] for line in printed if "| " in line]
    assert logs == [
        "starting from nothing",
        "asked to stop: writing a checkpoint",
        "resuming from the checkpoint",
        "trained",
    ]
    phases = phases_of(await user.history("pausable"))
    assert [phase for phase in phases if phase in ("Paused", "Resuming", "Succeeded")] == [
        "Paused",
        "Resuming",
        "Succeeded",
    ]
    replicas = (await user.read("/pausable/replicas"))["items"]
    assert [(replica["attempt"], replica["restartCount"]) for replica in replicas] == [(2, 0), (2, 0)]


def phases_of(history: list[dict[str, Any]]) -> list[str]:
    """Return the phases of the job in order, each as often as it was entered."""
    phases: list[str] = []
    for entry in sorted(history, key=lambda entry: entry["seq"]):
        if not phases or phases[-1] != entry["phase"]:
            phases.append(entry["phase"])
    return phases


async def test_debug(user: User, api: KubeClient) -> None:
    """A demo cancels a live job of an interrupted one, and no other job of its name."""
    story, lines = named("debug"), list[str]()
    player = Player(user.http, user.namespace, lambda _, line: lines.append(line))
    document = yaml.safe_load(bundled_directory("examples").joinpath(story.file).read_bytes())
    await user.submit({**document, "metadata": {"name": "debug"}})
    await player.end_former([story])
    assert not lines
    await user.call("POST", "/debug/cancel", status=202)
    await user.ended("debug")
    former = await user.submit(document)
    await player.end_former([story])
    assert lines == ["is live from an interrupted demo: cancelling it first"]
    ended = await user.read("/debug/status")
    assert (ended["uid"], ended["status"]["phase"]) == (former["uid"], "Cancelled")
    await play(user, story)
    assert (await user.read("/debug/status"))["status"]["aggregate"]["failed"] == 0
    await api.eventually(
        f"/api/v1/namespaces/{user.namespace}/pods",
        lambda found: all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in found["items"]),
    )


async def test_failing_reports_the_rule_that_ended_it(user: User) -> None:
    printed = await play(user, named("failing"))
    assert any(line.endswith("| rank 1 has found a defect in its input") for line in printed)
    found = await user.read("/failing")
    assert found["nativeStatus"]["phase"] == "Failed"
    replica = next(r for r in (await user.read("/failing/replicas"))["items"] if r["rank"] == 1)
    assert replica["exitCode"] == 42
    assert "failureRules" in str(found["conditions"]) + found["status"]["message"]


@pytest.mark.timeout(600)
async def test_a_queued_job_waits_and_one_is_preempted(user: User, cluster: Cluster, api: KubeClient) -> None:
    async with await connect(kubeconfig=str(cluster.kubeconfig), context=None) as kube:
        if why_not := await make_queue(kube, user.namespace):
            pytest.skip(f"{why_not}: run `make test-cluster`")
    player = Player(user.http, user.namespace, lambda _name, _line: None)
    try:
        results = await asyncio.gather(*(player.play(story) for story in QUEUED))
        assert [(result.phase, result.restarts) for result in results] == [("Succeeded", 0)] * 3
        waits = [row["reason"] for row in await user.history("follow-up") if row["phase"] == "Queued"]
        assert "WaitingForQuota" in waits
        row = next(row for row in await user.history("experiment") if row["reason"] == "Evicting")
        assert f"JobUID: {(await user.read('/urgent'))['uid']}" in row["message"]
        assert phases_of(await user.history("experiment"))[-5:] == [
            "Running",
            "Queued",
            "Resuming",
            "Running",
            "Succeeded",
        ]
        log = await user.call("GET", "/experiment/logs?task=worker&rank=1&attempt=1")
        assert log.text.endswith("asked to stop: writing a checkpoint\n")
    finally:
        await api.delete(f"{API}/namespaces/{user.namespace}/localqueues/examples")
        for path in ("workloadpriorityclasses/examples-urgent", "clusterqueues/examples", "resourceflavors/examples"):
            await api.delete(f"{API}/{path}")


@pytest.mark.timeout(600)
async def test_all_examples_run_at_once(user: User) -> None:
    """All examples run in one namespace at the same time without conflicts."""
    async with asyncio.TaskGroup() as group:
        for story in STORIES:
            group.create_task(play(user, story))
    listed = (await user.read(""))["items"]
    assert {item["name"]: item["status"]["phase"] for item in listed} == {
        story.file.rpartition("/")[2].removesuffix(".yaml"): story.ends for story in STORIES
    }

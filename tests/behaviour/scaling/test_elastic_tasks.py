"""A DIJob whose tasks are resized: gaps in its lists, what its pods receive, and a lost node with a leaving replica."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.behaviour.client import DEADLINE, Body, Jobs
from tests.behaviour.scaling.elastic import di_job, di_task
from tests.behaviour.stage import NodeProcess, removed_node, running_node
from tests.support.clusters.kube import Cluster
from tests.support.waiting import until

NOTICED = 180.0  # a real controller manager notices in its own time


def environment(pod: Body) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in pod["spec"]["containers"][0]["env"]}


async def resize(jobs: Jobs, name: str, seq: int, task: str, replicas: int) -> None:
    await jobs.scale(name, replicas, task=task)
    assert (await jobs.until_settled(name, seq))["outcome"] == "Reached"
    await jobs.until(name, "Running")


async def until_listed(jobs: Jobs, name: str, pods: list[str]) -> None:
    """Wait until the job's own REST lists the addresses of these pods, and no address where there is no name."""
    token = environment(await jobs.pod(f"{name}-learner-0"))["DI_SERVER_TOKEN"]
    path, headers = f"/v2alpha1/job/{jobs.namespace}.{name}/replicas", {"Authorization": f"Bearer {token}"}

    async def addresses() -> list[str]:
        answer = await jobs.http.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        found: list[str] = answer.json()["data"]
        return found

    wanted = [f"{(await jobs.pod(pod))['status']['podIP']}:22270" if pod else "" for pod in pods]
    await until(addresses, lambda found: found == wanted, what=f"{wanted}", within=DEADLINE)


async def test_a_rank_that_left_leaves_a_hole_until_growth_fills_the_lowest(jobs: Jobs) -> None:
    tasks = [di_task("learner"), di_task("collector", 2), di_task("evaluator")]
    uid = (await jobs.submit(di_job("holes", tasks, minReplicas=3, maxReplicas=5)))["uid"]
    await jobs.until("holes", "Running")
    learner, collector, evaluator = "holes-learner-0", "holes-collector-0", "holes-evaluator-0"
    await until_listed(jobs, "holes", [learner, collector, "holes-collector-1", evaluator])
    before = {pod["metadata"]["name"]: pod for pod in await jobs.of_job("pods", uid)}
    await resize(jobs, "holes", 1, "collector", 1)
    await until_listed(jobs, "holes", [learner, collector, "", evaluator])
    await resize(jobs, "holes", 2, "evaluator", 3)
    await until_listed(jobs, "holes", [learner, collector, "holes-evaluator-1", evaluator, "holes-evaluator-2"])

    after = {pod["metadata"]["name"]: pod for pod in await jobs.of_job("pods", uid)}
    for name in (learner, collector, evaluator):
        assert after[name]["metadata"]["uid"] == before[name]["metadata"]["uid"]
        assert environment(after[name])["DI_NODES"].count("holes-collector-1.") == 1, "as of its creation"
    for name, rank in (("holes-evaluator-1", 2), ("holes-evaluator-2", 4)):
        variables = environment(after[name])
        nodes = variables["DI_NODES"].split(",")
        assert (variables["DI_RANK"], nodes[rank].partition(".")[0], len(nodes)) == (str(rank), name, 5)
        assert [node.partition(".")[0] for node in variables["DI_EVALUATOR_NODES"].split(",")] == [
            evaluator,
            "holes-evaluator-1",
            "holes-evaluator-2",
        ]
    native = (await jobs.job("holes"))["nativeStatus"]
    assert (native["reschedules"], native.get("restarts", 0), native["replicas"]) == (2, 0, 5)


@pytest.mark.parametrize(("task", "replicas", "accepted"), [("evaluator", 0, "1 to 3"), ("evaluator", 4, "1 to 3")])
async def test_the_bounds_of_a_job_are_those_of_all_its_tasks_together(
    task: str, replicas: int, accepted: str, jobs: Jobs
) -> None:
    tasks = [di_task("learner"), di_task("evaluator")]
    await jobs.submit(di_job("bounds", tasks, minReplicas=2, maxReplicas=4))
    body = {"replicas": replicas, "task": task}
    refused = await jobs.http.post(jobs.path("bounds", "scale"), json=body)
    assert refused.status_code == 422, refused.text
    [error] = refused.json()["errors"]
    assert (error["pointer"], error["code"], error["accepted"]) == ("/replicas", "OutOfRange", accepted)


# Only pods that ask for these nodes come here, one to a node, and nobody evicts them.
TOLERATIONS = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists"} for key in ("unreachable", "unschedulable")]


def apart(*nodes: NodeProcess) -> Body:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node.name for node in nodes]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
    others = {"labelSelector": {"matchLabels": {"diengine/job": "lost"}}, "topologyKey": "kubernetes.io/hostname"}
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [others]},
    }


@contextmanager
def frozen(node: NodeProcess) -> Iterator[None]:
    os.kill(node.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(node.pid, signal.SIGCONT)


@pytest_asyncio.fixture
async def nodes(stage: Cluster, tmp_path: Path) -> AsyncIterator[dict[str, NodeProcess]]:
    """Two cordoned nodes by their names."""
    with (
        running_node(stage, tmp_path / "one", "--cordoned") as one,
        running_node(stage, tmp_path / "other", "--cordoned") as other,
    ):
        async with removed_node(stage, one.name), removed_node(stage, other.name):
            yield {one.name: one, other.name: other}


@pytest.mark.timeout(600)
async def test_who_leaves_on_a_node_that_is_lost_is_forced_away(jobs: Jobs, nodes: dict[str, NodeProcess]) -> None:
    place: dict[str, Any] = {"tolerations": TOLERATIONS, "affinity": apart(*nodes.values())}
    uid = (await jobs.submit(di_job("lost", [di_task("collector", 2, **place)], minReplicas=1)))["uid"]
    await jobs.until("lost", "Running")
    node = (await jobs.pod("lost-collector-1"))["spec"]["nodeName"]
    with frozen(nodes[node]):
        await jobs.scale("lost", 1, task="collector")
        await jobs.until_objects("pods", uid, lambda pods: len(pods) == 1, within=NOTICED)
        assert (await jobs.until_settled("lost"))["outcome"] == "Reached"
        await jobs.until("lost", "Running")
        replica = await jobs.replica("lost", "collector-1")
        assert (replica["leaving"], replica["node"], replica["disruptions"]) == (True, node, 0)
        assert [attempt["outcome"] for attempt in replica["attempts"]] == ["Stopped"]
        await jobs.until_replica(
            "lost", lambda replica: replica["attempts"][0]["evidence"] == "Unavailable", key="collector-1"
        )
        [warning] = [row for row in await jobs.history("lost") if row["reason"] == "NodeLost"]
        assert "may still run" in warning["message"]
    assert (await jobs.replica("lost", "collector-0"))["attempt"] == 1

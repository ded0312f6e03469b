"""Kubernetes' own gang scheduling, on a control plane that has it: all pods of a job are placed, or none.

A node of each test's own has room for two pods. No other pod is placed there.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.behaviour.client import Body, Jobs
from tests.behaviour.manifests import FOREVER, container, job, task, until_marked
from tests.behaviour.scaling.elastic import di_job, di_task
from tests.support.clusters.kube import Cluster
from tests.support.clusters.nodes import running_node
from tests.support.waiting import until

VERSIONS = ("v1beta1", "v1alpha2")
HALF: Body = {"resources": {"requests": {"cpu": "1"}}}


@pytest_asyncio.fixture
async def groups(jobs: Jobs) -> str:
    """The path of the PodGroups in the namespace of the test."""
    for version in VERSIONS:
        served = await jobs.kube.get(f"/apis/scheduling.k8s.io/{version}")
        if served.status == 200 and any(one["kind"] == "PodGroup" for one in served.body["resources"]):
            return f"/apis/scheduling.k8s.io/{version}/namespaces/{jobs.namespace}/podgroups"
    pytest.skip("this cluster has no PodGroups of scheduling.k8s.io: run `GANG=1 make test-cluster`")


@pytest.fixture
def place(groups: str, stage: Cluster, tmp_path: Path) -> Iterator[Body]:  # noqa: ARG001  skips before it starts a node
    """What puts a pod on the node for two."""
    with running_node(stage, tmp_path / "node", "--cpu", "2", "--cordoned") as name:
        yield {
            "nodeSelector": {"kubernetes.io/hostname": name},
            "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}],
        }


def gang(name: str, script: str, place: Body, **more: Any) -> Body:
    """Two replicas that fill the node."""
    return job(name, task(replicas=2, containers=[container(script, **HALF)], **place, **more))


async def minima(jobs: Jobs, groups: str) -> Sequence[int]:
    items = (await jobs.kube.get(groups)).ok()["items"]
    return [item["spec"]["schedulingPolicy"]["gang"]["minCount"] for item in items]


async def until_no_group(jobs: Jobs, groups: str) -> None:
    await until(lambda: minima(jobs, groups), lambda left: not left, what="no PodGroup is left", within=90)


async def placed(jobs: Jobs, uid: str) -> int:
    """How many pods of the job have a node."""
    return sum("nodeName" in pod["spec"] for pod in await jobs.of_job("pods", uid))


def alone(pods: Sequence[Body]) -> list[str]:
    """The names of the pods that are in no PodGroup."""
    return sorted(pod["metadata"]["name"] for pod in pods if "schedulingGroup" not in pod["spec"])


def waits_for_room(status: Body) -> bool:
    """Whether the third replica of an elastic job, and no other one, waits for room by itself."""
    return [(one["code"], one["replicas"]) for one in status["pendingReasons"]] == [("Unschedulable", ["collector[2]"])]


async def test_of_two_gangs_on_room_for_one_the_second_waits_whole(
    jobs: Jobs, groups: str, place: Body, tmp_path: Path
) -> None:
    await jobs.submit(gang("first", until_marked(tmp_path / "go", "exit 0"), place))
    await jobs.until("first", "Running")
    second = (await jobs.submit(gang("second", FOREVER, place)))["uid"]
    reason = await jobs.pending("second", "GangUnschedulable")
    assert reason["message"]
    assert await placed(jobs, second) == 0
    assert await minima(jobs, groups) == [2, 2]
    (tmp_path / "go").touch()
    await jobs.until("first", "Succeeded")
    await jobs.until("second", "Running")
    await jobs.pause("second")
    await jobs.until("second", "Paused")
    await jobs.resume("second")
    await jobs.until("second", "Running")
    for name in ("first", "second"):
        await jobs.delete(name)
    await until_no_group(jobs, groups)


async def test_a_replaced_pod_joins_a_gang_that_is_whole_and_is_placed_alone_otherwise(
    jobs: Jobs, groups: str, place: Body, tmp_path: Path
) -> None:
    marks = [tmp_path / name for name in ("fail", "succeed", "fail-again", "end")]
    fail, succeed, fail_again, end = map(until_marked, marks, ("exit 1", "exit 0", "exit 1", "exit 0"))
    script = (
        f"case $HOSTNAME in *-0) {succeed} ;; esac; "
        f"test -e {marks[0]} || ({fail}) || exit 1; test -e {marks[2]} || ({fail_again}) || exit 1; {end}"
    )
    uid = (await jobs.submit(gang("again", script, place, policy="OnFailure", limit=5)))["uid"]
    await jobs.until("again", "Running")
    marks[0].touch()
    await jobs.until_replica("again", lambda one: one["attempt"] == 2 and one["phase"] == "Running", "worker-1")
    assert alone(await jobs.of_job("pods", uid)) == []
    marks[1].touch()
    await jobs.until_replica("again", lambda one: one["phase"] == "Succeeded", "worker-0")
    marks[2].touch()
    await jobs.until_replica("again", lambda one: one["attempt"] == 3 and one["phase"] == "Running", "worker-1")
    assert alone(await jobs.of_job("pods", uid)) == ["again-worker-1"]
    marks[3].touch()
    await jobs.until("again", "Succeeded")
    assert await minima(jobs, groups) == [2]


async def test_a_pod_is_replaced_although_another_client_has_deleted_the_podgroup(
    jobs: Jobs, groups: str, place: Body
) -> None:
    uid = (await jobs.submit(gang("bereft", FOREVER, place)))["uid"]
    await jobs.until("bereft", "Running")
    (group,) = (await jobs.kube.get(groups)).ok()["items"]
    (await jobs.kube.delete(f"{groups}/{group['metadata']['name']}")).ok()
    (await jobs.kube.delete(f"{jobs.objects('pods')}/bereft-worker-0")).ok()
    await jobs.until_replica("bereft", lambda one: one["attempt"] == 2 and one["phase"] == "Running", "worker-0")
    await jobs.pause("bereft")
    await jobs.until("bereft", "Paused")
    await jobs.resume("bereft")
    await jobs.until("bereft", "Running")
    assert alone(await jobs.of_job("pods", uid)) == []
    await jobs.delete("bereft")
    await until_no_group(jobs, groups)


async def test_a_pod_is_replaced_although_another_client_has_raised_the_minimum(
    jobs: Jobs, groups: str, place: Body
) -> None:
    if "/v1alpha2/" in groups:
        pytest.skip("the PodGroups of Kubernetes 1.36 cannot be changed")
    uid = (await jobs.submit(gang("edited", FOREVER, place)))["uid"]
    await jobs.until("edited", "Running")
    (group,) = (await jobs.kube.get(groups)).ok()["items"]
    raised = {"spec": {"schedulingPolicy": {"gang": {"minCount": 5}}}}
    (await jobs.kube.patch(f"{groups}/{group['metadata']['name']}", raised)).ok()
    (await jobs.kube.delete(f"{jobs.objects('pods')}/edited-worker-0")).ok()
    await jobs.until_replica("edited", lambda one: one["attempt"] == 2 and one["phase"] == "Running", "worker-0")
    assert alone(await jobs.of_job("pods", uid)) == ["edited-worker-0"]
    await jobs.pause("edited")
    await jobs.until("edited", "Paused")
    await jobs.resume("edited")
    await jobs.until("edited", "Running")
    assert alone(await jobs.of_job("pods", uid)) == []
    assert await minima(jobs, groups) == [2]
    await jobs.delete("edited")
    await until_no_group(jobs, groups)


async def test_an_elastic_job_starts_with_its_minimum_which_an_edit_may_lower(
    jobs: Jobs, groups: str, place: Body
) -> None:
    containers = [{**container(), "name": "di-container", **HALF}]
    body = di_job("elastic", [di_task("collector", 3, containers=containers, **place)], minReplicas=3)
    uid = (await jobs.submit(body))["uid"]
    await jobs.pending("elastic", "GangUnschedulable")
    assert await placed(jobs, uid) == 0
    await jobs.ask("PATCH", "elastic", json={"spec": {"minReplicas": 2}})
    await jobs.until_status("elastic", waits_for_room)
    pods = await jobs.of_job("pods", uid)
    assert alone(pods) == ["elastic-collector-2"]
    assert sum("nodeName" in pod["spec"] for pod in pods) == 2
    assert sorted(await minima(jobs, groups)) == [2, 3]
    await jobs.scale("elastic", 2)
    await jobs.until("elastic", "Running")
    await jobs.scale("elastic", 3)
    await jobs.until_status("elastic", waits_for_room)
    assert alone(await jobs.of_job("pods", uid)) == ["elastic-collector-2"]
    await jobs.delete("elastic")
    await until_no_group(jobs, groups)

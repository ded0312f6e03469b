"""Twenty jobs of four on room for eight pods: those that hold a part of the nodes free them, and all jobs end."""

import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.client import Jobs
from tests.behaviour.conftest import OtherGateway
from tests.behaviour.manifests import job, task
from tests.behaviour.stage import running_node
from tests.support.clusters.kube import Cluster
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)

ROOM, REPLICAS, JOBS = 8, 4, 20
IMPATIENT = {
    "JOBGATE_START_DEADLINE": "2",
    "JOBGATE_RESTART_BACKOFF": "0.3",
    "JOBGATE_RESTART_BACKOFF_MAX": "3",
    "JOBGATE_GANG_SCHEDULERS": "",
}
# Each replica leaves a mark while it runs, and goes on when the marks of all replicas of its job are there. The kubelet
# turns $$$$ into $$, the id of the shell.
TOGETHER = """
mark={marks}/{name}.$$$$
trap 'rm -f $mark; exit 1' TERM
touch $mark
while test $(ls {marks} | grep -c '^{name}[.]') -lt {replicas}; do sleep 0.1; done
"""


@pytest.fixture
def bound(stage: Cluster, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What a pod adds to run on a node with room for eight pods, on which no other pod runs."""
    with running_node(stage, tmp_path / "node", "--cpu", str(ROOM), "--cordoned") as node:
        selector = {"kubernetes.io/hostname": node.name}
        cordon = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
        yield {"nodeSelector": selector, "tolerations": [cordon]}


def of_pods(script: str, replicas: int, bound: dict[str, Any]) -> dict[str, Any]:
    of_one_cpu = task(script, replicas=replicas, policy="Never", **bound)
    of_one_cpu["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return of_one_cpu


async def test_jobs_that_take_each_others_nodes_all_end(
    other_gateway: OtherGateway, bound: dict[str, Any], tmp_path: Path
) -> None:
    marks, leave = tmp_path / secrets.token_hex(4), tmp_path / "leave"
    marks.mkdir()
    async with other_gateway(**IMPATIENT) as jobs:
        waits = f"while test ! -e {leave}; do sleep 0.1; done"
        await jobs.submit(job("first", of_pods(waits, ROOM - 2, bound)))
        await jobs.until("first", "Running")
        names = [f"gang-{number}" for number in range(JOBS)]
        scripts = {name: TOGETHER.format(marks=marks, name=name, replicas=REPLICAS) for name in names}
        await asyncio.gather(*(jobs.submit(job(name, of_pods(scripts[name], REPLICAS, bound))) for name in names))
        withdrawn = await until(lambda: first_withdrawn(jobs, names), bool, what="a job frees its nodes", within=120)
        leave.touch()
        ended = [await jobs.until(name, "Succeeded", within=300) for name in names]
        replicas = [replica for name in names for replica in (await jobs.replicas(name)).values()]
        reasons = await jobs.reasons(withdrawn)
    assert len(ended) == JOBS
    assert {(replica["restartCount"], replica["disruptions"]) for replica in replicas} == {(0, 0)}
    assert "StartDeadlineExceeded" in reasons


async def first_withdrawn(jobs: Jobs, names: list[str]) -> str:
    """Return the name of a job that has freed its nodes; empty if there is none."""
    for name in names:
        status = await jobs.status(name)
        if (status["phase"], status["reason"]) == ("Queued", "StartDeadlineExceeded"):
            return name
    return ""

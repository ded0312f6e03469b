"""The admission of a pod looks at each of the others only if the node may be full."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from devcluster.node.agent import NodeAgent
from devcluster.node.pods.worker import PodWorker
from devcluster.node.settings import NodeSettings


def pod(uid: str, phase: str = "Pending") -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"uid": uid}, "spec": {"containers": [container]}, "status": {"phase": phase}}


def agent_with(tmp_path: Path, looked_at: list[str], *pods: dict[str, Any], cpu: str) -> NodeAgent:
    agent = NodeAgent(tmp_path / "kubeconfig", "n", NodeSettings(data_dir=tmp_path, cpu=cpu))

    def worker_of(each: dict[str, Any]) -> PodWorker:
        def current() -> dict[str, Any]:
            looked_at.append(each["metadata"]["uid"])
            return each

        return cast(PodWorker, SimpleNamespace(current=current))

    for each in pods:
        agent._workers[each["metadata"]["uid"]] = worker_of(each)
        agent._ledger.charge(each)
    return agent


@pytest.mark.parametrize(
    ("cpu", "phase", "reason", "all_are_looked_at"),
    [
        ("3", "Running", None, False),
        ("2", "Running", "OutOfcpu", True),
        # Its end is not reported yet.
        ("2", "Succeeded", None, True),
    ],
)
def test_a_pod_is_admitted_by_the_sum_and_refused_by_the_others(
    tmp_path: Path, cpu: str, phase: str, reason: str | None, *, all_are_looked_at: bool
) -> None:
    looked_at: list[str] = []
    others = [pod("a", phase), pod("b", "Running")]
    agent = agent_with(tmp_path, looked_at, *others, pod("new"), cpu=cpu)
    refused = agent._reject(pod("new"))
    assert (refused and refused[0]) == reason
    assert bool(looked_at) == all_are_looked_at

"""Replicas of a frozen node are Unknown, then deleted by force and replaced on another node, if that is allowed."""

import asyncio
import os
import secrets
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.behaviour.client import Jobs, first_of
from tests.behaviour.conftest import OtherGateway
from tests.behaviour.manifests import job, task
from tests.behaviour.stage import NodeProcess, removed_node, running_node
from tests.support.clusters.kube import Cluster

pytestmark = pytest.mark.timeout(600)

NOTICED = 180.0  # a real controller manager is asked to notice within 10 s, and then evicts in its own time
SOON: dict[str, Any] = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
TOLERATIONS: list[dict[str, Any]] = [
    {"key": "node.kubernetes.io/unreachable", **SOON},
    {"key": "node.kubernetes.io/not-ready", **SOON},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
]


@dataclass(slots=True, kw_only=True)
class Pair:
    """Two cordoned nodes: only pods that ask for them come here, so nobody else's test loses its node.

    They are a zone of their own. In a zone where more than two nodes, and most of them, are not ready, a node lifecycle
    controller evicts no pod.
    """

    frozen: NodeProcess
    healthy: NodeProcess

    def freeze(self) -> None:
        os.kill(self.frozen.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.frozen.pid, signal.SIGCONT)

    def bound(self, **more: Any) -> dict[str, Any]:
        """A task that runs on these nodes alone."""
        names = [self.frozen.name, self.healthy.name]
        here = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}}
        return task(tolerations=TOLERATIONS, affinity=affinity, **more)

    async def start_second(self) -> None:
        await asyncio.to_thread(self.healthy.start)


@pytest_asyncio.fixture
async def pair(stage: Cluster, tmp_path: Path) -> AsyncIterator[Pair]:
    arguments = ("--cordoned", "--zone", secrets.token_hex(4))
    with running_node(stage, tmp_path / "frozen", *arguments) as frozen:
        healthy = NodeProcess(stage, tmp_path / "healthy", *arguments)
        pair = Pair(frozen=frozen, healthy=healthy)
        async with removed_node(stage, frozen.name), removed_node(stage, healthy.name):
            try:
                yield pair
            finally:
                pair.thaw()
                healthy.stop()


async def test_a_frozen_nodes_pod_is_unknown_then_forced_away_and_replaced_on_another_node(
    jobs: Jobs, pair: Pair
) -> None:
    uid = (await jobs.submit(job("frozen", pair.bound())))["uid"]
    await jobs.until("frozen", "Running")
    [pod] = await jobs.of_job("pods", uid)
    assert pod["spec"]["nodeName"] == pair.frozen.name
    await pair.start_second()
    pair.freeze()
    replica = await jobs.until_replica(
        "frozen", lambda replica: replica["attempt"] == 2 and replica["phase"] == "Running", within=NOTICED
    )
    assert replica["node"] == pair.healthy.name
    assert (replica["restartCount"], replica["disruptions"]) == (0, 1)
    first = first_of(replica)
    assert (first["outcome"], first["reason"], first["node"]) == ("Disrupted", "NodeLost", pair.frozen.name)
    assert first["evidence"] == "Unavailable"
    history = await jobs.history("frozen")
    assert ("Unknown", "NodeLost") in [(row["phase"], row["reason"]) for row in history if row["task"] is None]
    rows = [row for row in history if row["reason"] == "NodeLost" and row["attempt"] == 1]
    assert len(rows) == 1
    assert "may still run" in rows[0]["message"]
    await jobs.until("frozen", "Running")
    reasons = {row["reason"] for row in await jobs.history("frozen")}
    assert "Disrupted" in reasons
    assert "ReplicaRestarting" not in reasons


async def test_a_node_that_comes_back_in_time_brings_its_replica_back(jobs: Jobs, pair: Pair) -> None:
    """The pod tolerates its node's silence for long, so nobody takes it away."""
    bound = pair.bound()
    patience = [{**item, "tolerationSeconds": 600} if "tolerationSeconds" in item else item for item in TOLERATIONS]
    bound["template"]["spec"]["tolerations"] = patience
    await jobs.submit(job("patient", bound))
    await jobs.until("patient", "Running")
    pair.freeze()
    await jobs.until("patient", "Unknown", within=NOTICED)
    pair.thaw()
    await jobs.until("patient", "Running", within=NOTICED)
    replica = await jobs.replica("patient")
    assert (replica["attempt"], replica["disruptions"]) == (1, 0)


@pytest_asyncio.fixture
async def careful(other_gateway: OtherGateway) -> AsyncIterator[Jobs]:
    """A client of a gateway that never deletes by force."""
    async with other_gateway(JOBGATE_NODE_LOST_AFTER="never") as client:
        yield client


async def test_where_force_is_forbidden_the_replica_stays_unknown(careful: Jobs, jobs: Jobs, pair: Pair) -> None:
    await careful.submit(job("stays", pair.bound()))
    # Another gateway uses force. Its pod is on the same node, and its grace period ends later.
    await jobs.submit(job("forced", pair.bound(terminationGracePeriodSeconds=3)))
    await careful.until("stays", "Running")
    await jobs.until("forced", "Running")
    await pair.start_second()
    pair.freeze()
    await careful.until("stays", "Unknown", within=NOTICED)
    path = careful.objects("pods", "stays-worker-0")
    await careful.kube.eventually(path, lambda pod: pod["metadata"].get("deletionTimestamp"), within=NOTICED)
    await jobs.until_replica("forced", lambda replica: replica["attempt"] == 2, within=NOTICED)
    replica = await careful.replica("stays")
    assert (replica["attempt"], replica["phase"]) == (1, "Unknown")
    status = await careful.status("stays")
    assert (status["phase"], status["reason"], status["aggregate"]["unknown"]) == ("Unknown", "NodeLost", 1)
    assert (await careful.pod("stays-worker-0"))["metadata"]["finalizers"] == ["jobgate.dev/evidence"]
    pair.thaw()
    replica = await careful.until_replica(
        "stays", lambda replica: replica["attempt"] == 2 and replica["phase"] == "Running", within=NOTICED
    )
    assert first_of(replica)["outcome"] == "Disrupted"

"""The examples of MxJob, and those of the operator."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.test_stories import named, play
from tests.e2e.user import User
from tests.support.clusters.kube import KubeClient

SHIPPED = Path(__file__).parents[1] / "data" / "mx_job"


async def test_weights_are_exchanged_over_tcp(user: User) -> None:
    printed = await play(user, named("kvstore"))
    assert any("| trained: bias = 2.0" in line or "| trained: bias = 1.9" in line for line in printed)
    assert any(line.endswith("| all workers are done") for line in printed)
    servers = [(await user.call("GET", f"/kvstore/logs?task=server&rank={rank}")).text for rank in range(2)]
    assert sorted(" ".join(text.split()[2:5]) for text in servers) == ["held 2 weights:", "held 3 weights:"]
    native = (await user.read("/kvstore"))["nativeStatus"]
    assert (native["phase"], native["state"]) == ("Done", "Succeeded")


async def test_a_killed_worker_is_restarted(user: User) -> None:
    await play(user, named("local"))
    (replica,) = (await user.read("/local/replicas"))["items"]
    assert [attempt["exitCode"] for attempt in replica["attempts"]] == [137, 0]
    native = (await user.read("/local"))["nativeStatus"]
    ring = [condition["type"] for condition in native["conditions"]]
    # Kubernetes reports the end of a container in whole seconds, so it may come before or after Ready.
    assert [kind for kind in ring if kind != "RemovingDeadMember"] == ["Ready", "Recovering", "Ready"]
    (dead,) = (condition for condition in native["conditions"] if condition["type"] == "RemovingDeadMember")
    assert dead["reason"].startswith("removing dead member local-worker-")
    (listed,) = (item for item in (await user.read(""))["items"] if item["name"] == "local")
    assert listed["nativeStatus"] == native
    assert native["replicaStatuses"] == [
        {"Mx_replica_type": "WORKER", "state": "Succeeded", "ReplicasStates": {"Succeeded": 1}}
    ]


def has(count: int, listed: dict[str, Any]) -> bool:
    return len(listed["items"]) == count


@pytest.mark.parametrize(
    ("case", "pods", "services"), [("shipped_dist", 6, 1), ("shipped_local", 1, 0), ("chart", 6, 1)]
)
async def test_the_operators_own_examples_are_accepted_unchanged(
    user: User, api: KubeClient, case: str, pods: int, services: int
) -> None:
    text = (SHIPPED / case / "manifest.yaml").read_text(encoding="utf-8")
    name = yaml.safe_load(text)["metadata"]["name"]
    posted = await user.http.post(user.jobs, content=text, headers={"Content-Type": "application/yaml"})
    assert posted.status_code == 201, posted.text

    for kind, count in (("pods", pods), ("services", services)):
        await api.eventually(f"/api/v1/namespaces/{user.namespace}/{kind}", partial(has, count))
    native = (await user.read(f"/{name}"))["nativeStatus"]
    # Their images are not available, but the embedded node may start a command that it knows.
    assert native["phase"] in ("Creating", "Running")
    assert {role["state"] for role in native["replicaStatuses"]} <= {"Starting", "Running"}

"""What a worker takes up when the agent starts beside pods of a former agent."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from devcluster.node.context import NodeRuntime
from devcluster.node.pods.player import no_player
from devcluster.node.pods.worker import PodWorker
from devcluster.node.settings import NodeSettings


async def test_an_ended_pod_takes_no_address(tmp_path: Path) -> None:
    """A live pod may need it, and the agent starts the workers of all pods before one of them gives an address back."""

    def address(uid: str) -> str:
        raise AssertionError(f"{uid} takes an address")

    pod: dict[str, Any] = {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "1"},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
        "status": {"phase": "Succeeded", "podIP": "127.2.0.1"},
    }
    node = SimpleNamespace(client=None, address=address, settings=NodeSettings(data_dir=tmp_path))
    worker = PodWorker(cast(NodeRuntime, node), pod, no_player)
    assert worker.context.ip == "127.2.0.1"

"""The second node of the data cache: it has a disk of its own, and runs only pods that tolerate its cordon."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.k8s.api import KubeApi
from app.k8s.codec import NODE as CODEC
from app.k8s.errors import KubeError
from app.k8s.resources import NODE
from app.running.dev import child_process

NAME = "second-node"
# Time limits for start and stop; a stop unmounts volumes.
START = 30.0  # seconds
STOP = 30.0
# The toleration of the pods that may run there.
TOLERATION = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


@asynccontextmanager
async def second_node(api: KubeApi, kubeconfig: Path, data_dir: Path) -> AsyncIterator[None]:
    """Run a second node during the block, and delete its Node object afterwards."""
    command = (
        *(sys.executable, "-m", "devcluster.node", "--kubeconfig", str(kubeconfig), "--name", NAME),
        *("--data-dir", str(data_dir), "--host-root", str(data_dir / "disk"), "--cordoned"),
        *("--parent", str(os.getpid())),
    )
    log_file = data_dir / "node.log"
    try:
        async with child_process(
            "the second node", command, log_file=log_file, announces="NODE=", start=START, stop=STOP
        ):
            yield
    finally:
        await _remove(api)


async def _remove(api: KubeApi) -> None:
    try:
        found = await api.get(NODE, NAME, codec=CODEC)
        await api.delete(NODE, NAME, uid=found.metadata.uid)
    except KubeError:
        return  # the cluster is ending, and its Node objects with it

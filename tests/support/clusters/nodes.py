"""A node agent as a separate process, which runs the pods of jobs.

JOBGATE_TEST_NODE=<name>  ─▶ that node, which already exists and which several test processes use
unset                     ─▶ a node during the block, which is removed afterwards
"""

import asyncio
import os
import secrets
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.clusters.kube import Cluster, connect

GIVEN_NODE = "JOBGATE_TEST_NODE"
# Short times, because tests wait for back-offs, leases and refreshed volumes.
QUICK = ("--backoff-base", "1", "--retry", "0.2", "--lease-interval", "1", "--configmap-refresh", "1")
START_SECONDS = 120.0


@contextmanager
def some_node(cluster: Cluster, data_dir: Path) -> Iterator[str]:
    """The name of a node of a cluster that other tests use too."""
    given = os.environ.get(GIVEN_NODE)
    if given:
        yield given
        return
    with running_node(cluster, data_dir) as name:
        yield name


@contextmanager
def running_node(cluster: Cluster, data_dir: Path, *arguments: str) -> Iterator[str]:
    """Run a node during the block, and yield its name."""
    name = f"node-{secrets.token_hex(4)}"
    command = [sys.executable, "-m", "devcluster.node", "--kubeconfig", str(cluster.kubeconfig), "--name", name]
    process = subprocess.Popen(
        [*command, "--data-dir", str(data_dir), *QUICK, *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if ready else ""
        assert line == f"NODE={name}\n", line
        yield name
    finally:
        _end(process)
        asyncio.run(_remove(cluster, name))


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()


async def _remove(cluster: Cluster, name: str) -> None:
    """Delete the Node, so that no pod is scheduled to a machine that is gone."""
    async with connect(cluster) as api:
        await api.delete(f"/api/v1/nodes/{name}")

"""The environment of the tests: a control plane, a node that runs commands, and gateways with short timeouts.

stage (cluster and node) ◀─ gateway (a process a session) ◀─ Jobs (a client with one namespace)
"""

import os
import secrets
import select
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.support.clusters.cluster import REAL_CLUSTER, running_embedded_cluster
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.gateways.process import GatewayProcess, gateway_process
from tests.support.postgres import fresh_database
from tests.support.verification import assert_invariants

QUICK_NODE = ("--backoff-base", "1", "--retry", "0.2", "--lease-interval", "1", "--configmap-refresh", "1")
QUICK_CLUSTER = ("--nodes", "0", "--bookmark-period", "1", "--node-monitor-grace", "10")
NODE_LOST_AFTER = 2.0
EAGER = {
    "JOBGATE_LEASE_SECONDS": "15",
    "JOBGATE_REQUEST_TIMEOUT": "5",
    "JOBGATE_RESTART_BACKOFF": "0.3",
    "JOBGATE_EVENTS_AFTER": "0.5",
    "JOBGATE_NODE_LOST_AFTER": str(NODE_LOST_AFTER),
    "JOBGATE_EVIDENCE_DEADLINE": "30",
}


class NodeProcess:
    """A node agent that a test may freeze by its pid."""

    def __init__(self, cluster: Cluster, data_dir: Path, *arguments: str) -> None:
        self.name = f"node-{secrets.token_hex(4)}"
        self._command = [sys.executable, "-m", "devcluster.node", "--kubeconfig", str(cluster.kubeconfig)]
        self._command += ["--name", self.name, "--data-dir", str(data_dir), *QUICK_NODE, *arguments]
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], 120)
        line = self._process.stdout.readline() if ready else ""
        assert line == f"NODE={self.name}\n", line

    def stop(self) -> None:
        """Ask for an end, and insist: one that is frozen hears nothing."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None


@contextmanager
def running_node(cluster: Cluster, data_dir: Path, *arguments: str) -> Iterator[NodeProcess]:
    node = NodeProcess(cluster, data_dir, *arguments)
    try:
        node.start()
        yield node
    finally:
        node.stop()


@contextmanager
def control_plane(directory: Path, *arguments: str) -> Iterator[Cluster]:
    """The real one where one is given, else an embedded cluster of its own."""
    given = os.environ.get(REAL_CLUSTER)
    if given:
        yield Cluster.read(Path(given), real=True)
        return
    with running_embedded_cluster(directory, *QUICK_CLUSTER, *arguments) as cluster:
        yield cluster


@asynccontextmanager
async def running_gateway(
    cluster: Cluster, server_url: str, template: str, directory: Path, **environment: str
) -> AsyncIterator[GatewayProcess]:
    """A gateway with a database, and so an installation, of its own. Its invariants hold afterwards."""
    async with (
        fresh_database(server_url, template=template) as url,
        gateway_process(url, cluster.kubeconfig, directory, **(EAGER | environment)) as gateway,
    ):
        await gateway.start()
        yield gateway
        await assert_invariants(url, cluster)


@asynccontextmanager
async def fresh_namespace(api: KubeClient) -> AsyncIterator[str]:
    name = f"behaviour-{secrets.token_hex(4)}"
    (await api.post("/api/v1/namespaces", {"metadata": {"name": name}})).ok()
    await api.eventually(f"/api/v1/namespaces/{name}/serviceaccounts/default", bool)
    yield name
    await api.delete(f"/api/v1/namespaces/{name}")


@asynccontextmanager
async def removed_node(cluster: Cluster, name: str) -> AsyncIterator[None]:
    """Takes the Node away afterwards, so that a cluster that outlives the tests stays clean."""
    yield
    async with connect(cluster) as api:
        await api.delete(f"/api/v1/nodes/{name}")

"""A Kubernetes API for tests: the embedded cluster, or a real control plane when one is given.

    JOBGATE_TEST_KUBECONFIG unset ─▶ one embedded cluster for each session, as a separate process without nodes
    JOBGATE_TEST_KUBECONFIG=<file> ─▶ that control plane; `embedded_cluster` is still the embedded one

`cluster` is the selected cluster, `api` a raw client of it, `namespace` a new namespace that is deleted afterwards.
"""

import os
import secrets
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.clusters.kube import Cluster, KubeClient, connect

REAL_CLUSTER = "JOBGATE_TEST_KUBECONFIG"
REAL_GATEWAY = "JOBGATE_TEST_GATEWAY_KUBECONFIG"
START_SECONDS = 120.0  # a loaded machine takes long to import the program


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "conformance: holds the embedded cluster and a real control plane to one truth")


def as_gateway(kubeconfig: Path) -> Path:
    """Let gateways of the test authenticate as the user `gateway` on a real cluster, if its kubeconfig is given."""
    admin, gateway = os.environ.get(REAL_CLUSTER), os.environ.get(REAL_GATEWAY)
    if admin and gateway and kubeconfig.resolve() == Path(admin).resolve():
        return Path(gateway)
    return kubeconfig


def require_real(cluster: Cluster, lacking: str) -> None:
    """Skip the test on the embedded cluster, which lacks this."""
    if not cluster.real:
        pytest.skip(f"the embedded cluster has no {lacking}: set {REAL_CLUSTER}, or run `make test-cluster`")


def require_faults(cluster: Cluster) -> None:
    """Skip the test on a real cluster, whose API server cannot inject faults."""
    if cluster.real:
        pytest.skip(f"only the API server of the embedded cluster can inject faults: unset {REAL_CLUSTER}")


class EmbeddedProcess:
    """`python -m devcluster` with a data directory. It can be killed and started again on the same port."""

    def __init__(self, data_dir: Path, *arguments: str) -> None:
        self._data_dir = data_dir
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self._port = "0"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Cluster:
        command = [sys.executable, "-m", "devcluster", "--data-dir", str(self._data_dir), "--port", self._port]
        process = subprocess.Popen([*command, *self._arguments], stdout=subprocess.PIPE, text=True)
        self._process = process
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if ready else ""
        if not line.startswith("KUBECONFIG="):
            self.kill()
            raise AssertionError(f"the embedded cluster did not start: {line!r}")
        cluster = Cluster.read(Path(line.strip().partition("=")[2]), real=False)
        self._port = cluster.url.rpartition(":")[2]
        return cluster

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send SIGTERM, wait for the end, and return the exit status."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._reap()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._reap()

    def _reap(self) -> int:
        assert self._process is not None
        status = self._process.wait(120)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None
        return status


@contextmanager
def running_embedded_cluster(data_dir: Path, *arguments: str) -> Iterator[Cluster]:
    """Run an embedded cluster during the block. The arguments are those of `python -m devcluster`."""
    process = EmbeddedProcess(data_dir, *arguments)
    try:
        yield process.start()
    finally:
        process.kill()


@pytest.fixture(scope="session")
def embedded_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("embedded-cluster")
    with running_embedded_cluster(directory, "--nodes", "0", "--bookmark-period", "1", "--pod-groups") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """The real control plane if one is given, otherwise the embedded cluster."""
    given = os.environ.get(REAL_CLUSTER)
    if given:
        return Cluster.read(Path(given), real=True)
    embedded: Cluster = request.getfixturevalue("embedded_cluster")
    return embedded


@pytest_asyncio.fixture
async def api(cluster: Cluster) -> AsyncIterator[KubeClient]:
    async with connect(cluster) as client:
        yield client


@pytest_asyncio.fixture
async def namespace(api: KubeClient) -> AsyncIterator[str]:
    name = f"test-{secrets.token_hex(5)}"
    (await api.post("/api/v1/namespaces", {"metadata": {"name": name}})).ok()
    await api.eventually(f"/api/v1/namespaces/{name}/serviceaccounts/default", bool)
    yield name
    await api.delete(f"/api/v1/namespaces/{name}")

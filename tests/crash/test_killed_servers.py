"""A runtime server and jobgate are killed during a sync. The sync completes, and no mount is left."""

import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from app.base.faultpoints import FaultPoint
from app.demo.second_node import TOLERATION
from app.running.dev import RUNTIME_IMAGE
from devcluster.node.storage.fuse import mounts_below
from tests.crash.sample_stories import DEADLINE, SampleClient, check_cluster
from tests.support.cache.juicefs import make_files, needs_fuse
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.clusters.nodes import running_node
from tests.support.gateways.process import STEADY, gateway_process
from tests.support.machine.processes import processes_of, until_processes

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900), needs_fuse]


def placed(node: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"nodeAffinity": required, "tolerations": [TOLERATION]}


def digests(top: Path) -> dict[str, str]:
    """Return the digest of each file, without the virtual files of JuiceFS: reading its access log never ends."""
    files = (path for path in top.rglob("[!.]*") if path.is_file())
    return {str(path.relative_to(top)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def servers(home: Path) -> list[int]:
    return [pid for pid, command in processes_of(str(home)).items() if "cacheserver server" in command]


class Machine(NamedTuple):
    node: str
    home: Path


@pytest.fixture
def machine(busy_cluster: Cluster, tmp_path: Path) -> Iterator[Machine]:
    home = tmp_path / "machine"
    with running_node(busy_cluster, home, "--cordoned", "--host-root", str(home / "disk")) as node:
        yield Machine(node, home)
    assert mounts_below(tmp_path) == []


async def make_volume(api: KubeClient, namespace: str, home: Path) -> None:
    (home / "bucket").mkdir()
    data = {"name": "volume", "storage": "file", "bucket": f"{home}/bucket/", "metaurl": f"sqlite3://{home}/meta.db"}
    document = {"metadata": {"name": "volume"}, "stringData": data}
    (await api.post(f"/api/v1/namespaces/{namespace}/secrets", document)).ok()


async def test_a_sync_completes_after_its_server_and_jobgate_are_killed(
    machine: Machine,
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    tmp_path: Path,
) -> None:
    source, more = tmp_path / "source", tmp_path / "more"
    make_files(source, 10, size=20_000)
    make_files(more, 1, size=20_000_000)
    await make_volume(crash_api, crash_namespace, tmp_path)
    settings = {**STEADY, "JOBGATE_RUNTIME_IMAGE": RUNTIME_IMAGE}
    async with gateway_process(database_url, busy_cluster.kubeconfig, tmp_path / "gateway", **settings) as gateway:
        await gateway.start({"JOBGATE_FAULT_POINTS": f"{FaultPoint.SAMPLE_POSTED}:1"})
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as http:
            spec = placed(machine.node)
            client = SampleClient(http=http, api=crash_api, namespace=crash_namespace, secret="volume", spec=spec)
            await client.submit("samplesets", client.sample_set("real", f"file://{source}/"))
            assert await gateway.ended(within=DEADLINE) == -signal.SIGKILL
            await gateway.start()
            await client.is_ready("real", 1)

            slow = {"source": f"file://{more}/", "destination": "more", "bwlimit": 1}
            ref = {"secretRef": {"name": "volume"}}
            await client.submit("samplejobs", client.sample_job("slow", "real", "sync", syncOptions=slow, **ref))
            await until_processes(
                str(machine.home), lambda found: any("juicefs --verbose sync" in c for c in found.values())
            )
            await client.edit("samplejobs", "slow", syncOptions={**slow, "bwlimit": 0})
            await gateway.kill()
            for pid in servers(machine.home):
                os.kill(pid, signal.SIGKILL)
            await gateway.start()
            await client.has_ended("slow", "Succeeded")
            mount = next(path for path in mounts_below(machine.home) if (path / "more").is_dir())
            copied = {f"more/{name}": digest for name, digest in digests(more).items()}
            assert digests(mount) == digests(source) | copied

            await client.delete("samplesets", "real")
            await check_cluster(crash_api, crash_namespace)
            assert await gateway.stop() == 0
    assert servers(machine.home) == []

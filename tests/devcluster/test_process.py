"""The embedded cluster as a process: what survives a kill, and how it ends."""

import asyncio
import signal
import ssl
import stat
from pathlib import Path

import aiohttp
import pytest

from devcluster.run import _kept_token
from tests.conformance.manifests import bound_pod, config_map, owner
from tests.support.clusters.cluster import EmbeddedProcess, running_embedded_cluster
from tests.support.clusters.kube import Cluster, KubeClient, connect

MAPS = "/api/v1/namespaces/default/configmaps"
GROUPS = "/apis/scheduler.tensorstack.dev/v1beta1/namespaces/default/podgroups"


async def write_until_it_dies(cluster: Cluster, process: EmbeddedProcess) -> list[tuple[str, int]]:
    """Create objects, pull the plug on the way, and return what was acknowledged."""
    acknowledged: list[tuple[str, int]] = []

    async def create(api: KubeClient, worker: int) -> None:
        for number in range(100_000):
            name = f"c-{worker}-{number}"
            made = (await api.post(MAPS, config_map(name))).ok()
            acknowledged.append((name, int(made["metadata"]["resourceVersion"])))
            if len(acknowledged) == 200:
                process.kill()

    async with connect(cluster) as api:
        results = await asyncio.gather(*(create(api, worker) for worker in range(4)), return_exceptions=True)
    assert all(isinstance(result, aiohttp.ClientError | OSError) for result in results)
    return acknowledged


async def test_sigkill_loses_nothing(tmp_path: Path) -> None:
    process = EmbeddedProcess(tmp_path, "--nodes", "0")
    try:
        cluster = process.start()
        async with connect(cluster) as api:
            anchor = (await api.post(MAPS, config_map("anchor"))).ok()
            (await api.post(MAPS, config_map("child", ownerReferences=[owner(anchor)]))).ok()
            (await api.post("/api/v1/namespaces/default/pods", bound_pod())).ok()
            (await api.delete("/api/v1/namespaces/default/pods/p")).ok()
            system = (await api.get("/api/v1/namespaces/kube-system")).ok()["metadata"]["uid"]
        acknowledged = await write_until_it_dies(cluster, process)
        again = process.start()
        assert again == cluster
        async with connect(again) as api:
            listed = (await api.get(MAPS)).ok()
            found = {item["metadata"]["name"]: item for item in listed["items"]}
            assert {name for name, _ in acknowledged} <= found.keys()
            assert int(listed["metadata"]["resourceVersion"]) >= max(version for _, version in acknowledged)
            assert all(found[name]["metadata"]["resourceVersion"] == str(seen) for name, seen in acknowledged)
            assert (await api.get("/api/v1/namespaces/kube-system")).ok()["metadata"]["uid"] == system
            pod = (await api.get("/api/v1/namespaces/default/pods/p")).ok()
            assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
            made = (await api.post(MAPS, config_map("later"))).ok()
            assert int(made["metadata"]["resourceVersion"]) > max(version for _, version in acknowledged)
            (await api.delete(f"{MAPS}/anchor")).ok()
            await api.gone(f"{MAPS}/child")
    finally:
        process.kill()


async def test_versions_from_before_a_restart_are_gone(tmp_path: Path) -> None:
    process = EmbeddedProcess(tmp_path, "--nodes", "0")
    try:
        async with connect(process.start()) as api:
            old = (await api.post(MAPS, config_map("a"))).ok()["metadata"]["resourceVersion"]
            (await api.post(MAPS, config_map("b"))).ok()
            page = (await api.get(MAPS, limit="1")).ok()["metadata"]["continue"]
        assert process.end() == 0
        async with connect(process.start()) as api:
            answer = await api.get(MAPS, watch="true", resourceVersion=old, timeoutSeconds="1")
            assert answer.body["object"]["code"] == 410
            (await api.get(MAPS, **{"limit": "1", "continue": page})).refused(410, "Expired")
    finally:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_ends_soon_with_open_watches(tmp_path: Path, number: signal.Signals) -> None:
    process = EmbeddedProcess(tmp_path, "--nodes", "0")
    try:
        async with connect(process.start()) as api, api.watch(MAPS), api.watch("/api/v1/pods"):
            assert await asyncio.to_thread(process.end, number) == 0
    finally:
        process.kill()


async def test_a_data_directory_has_one_owner(tmp_path: Path) -> None:
    with running_embedded_cluster(tmp_path, "--nodes", "0"), pytest.raises(AssertionError, match="did not start"):
        EmbeddedProcess(tmp_path, "--nodes", "0").start()


async def test_kubeconfig_is_private(embedded_cluster: Cluster) -> None:
    assert stat.S_IMODE(embedded_cluster.kubeconfig.stat().st_mode) == 0o600
    keys = list((embedded_cluster.kubeconfig.parent / "pki").glob("*.key"))
    assert keys
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}


async def test_the_server_shows_a_certificate_of_the_kubeconfigs_authority(embedded_cluster: Cluster) -> None:
    """Clients such as kubectl send no token over plain HTTP."""
    assert embedded_cluster.url.startswith("https://127.0.0.1:")
    async with connect(embedded_cluster) as api:
        assert (await api.get("/version")).ok()["minor"] == "36"
    strangers = ssl.create_default_context()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=strangers)) as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{embedded_cluster.url}/healthz")


async def test_pod_groups_where_asked_for(embedded_cluster: Cluster, tmp_path: Path) -> None:
    group = {
        "apiVersion": "scheduler.tensorstack.dev/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 2, "whatever": {"is": "kept"}},
    }
    async with connect(embedded_cluster) as api:
        made = (await api.post(GROUPS, group)).ok()
        assert made["spec"] == group["spec"]
        assert made["metadata"]["generation"] == 1
        (await api.post(GROUPS, {"metadata": {"name": "h"}})).refused(400, "BadRequest")
        listed = (await api.get(GROUPS)).ok()
        assert [item["kind"] for item in listed["items"]] == ["PodGroup"]
        names = [entry["name"] for entry in (await api.get("/apis")).ok()["groups"]]
        assert "scheduler.tensorstack.dev" in names
        (await api.delete(f"{GROUPS}/g")).ok()
    with running_embedded_cluster(tmp_path, "--nodes", "0") as plain:
        async with connect(plain) as api:
            assert (await api.get(GROUPS)).status == 404


def test_a_generated_token_is_no_option(tmp_path: Path) -> None:
    """As the argument of an option: one in 64 random tokens would begin with a hyphen."""
    for number in range(1000):
        home = tmp_path / str(number)
        home.mkdir()
        token = _kept_token(home)
        assert token.isalnum()
        assert token == _kept_token(home)

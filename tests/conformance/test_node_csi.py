"""JuiceFS volumes on a node: really mounted, once a node, and gone when nobody uses them."""

import os
import secrets
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from devcluster.node.processes.leftovers import find_marked
from devcluster.node.storage.fuse import mounts_below, why_no_fuse
from tests.conformance.node_support import Node, Pods, events, shell, state
from tests.conformance.volumes import VOLUMES, claim, in_phase, remove, volume
from tests.support.cache.juicefs import needs_fuse
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.waiting import until

pytestmark = pytest.mark.conformance

KEY = "very-secret-key"
MOUNTS = [{"name": "v", "mountPath": "/mnt/set"}]
VOLUME = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]


class Disk:
    """A bound JuiceFS claim named `c`, with its own bucket and metadata below a directory."""

    def __init__(self, pods: Pods, directory: Path) -> None:
        self.pods = pods
        self.directory = directory
        self.secret = f"{pods.base}/secrets/juice"
        self.volume = ""
        self.name = f"disk-{secrets.token_hex(4)}"

    async def create(self, options: str = "") -> None:
        options = options or f"cache-dir={self.directory}/cache,cache-size=64"
        reference = {"name": "juice", "namespace": self.pods.namespace}
        attributes = {"mountOptions": options}
        csi = {"driver": "csi.juicefs.com", "volumeHandle": secrets.token_hex(4), "fsType": "juicefs"}
        body = volume(csi=csi | {"volumeAttributes": attributes, "nodePublishSecretRef": reference})
        self.volume = body["metadata"]["name"]
        data = {
            "name": self.name,
            "metaurl": f"sqlite3://{self.directory}/meta.db",
            "storage": "file",
            "bucket": f"{self.directory}/bucket/",
            "access-key": "an-access-key",
            "secret-key": KEY,
        }
        api = self.pods.api
        (await api.post(f"{self.pods.base}/secrets", {"metadata": {"name": "juice"}, "stringData": data})).ok()
        (await api.post(VOLUMES, body)).ok()
        claims = f"{self.pods.base}/persistentvolumeclaims"
        (await api.post(claims, claim(self.volume))).ok()
        await api.eventually(f"{claims}/c", in_phase("Bound"))

    async def run(self, name: str, script: str, **spec: Any) -> dict[str, Any]:
        main = shell(script, volumeMounts=MOUNTS)
        return await self.pods.create(name, main, volumes=VOLUME, terminationGracePeriodSeconds=0, **spec)


@pytest_asyncio.fixture
async def disk(pods: Pods, tmp_path: Path) -> AsyncIterator[Disk]:
    made = Disk(pods, tmp_path)
    yield made
    if made.volume:
        await remove(pods.api, f"{VOLUMES}/{made.volume}")


async def unmounted(folder: Path) -> None:
    """Nothing is mounted below it, and no command that mounted there still runs."""
    await until(lambda: not (mounts_below(folder) or str(folder) in command_lines()), within=90)


def command_lines() -> str:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)


@needs_fuse
async def test_pods_of_a_node_share_one_mount_that_goes_with_the_last(disk: Disk) -> None:
    await disk.create()
    csi = disk.pods.node.data_dir / "csi"
    await disk.run("writer", "echo from writer > /mnt/set/file; sleep 1000")
    await disk.run("other", "sleep 1000")
    for name in ("writer", "other"):
        await disk.pods.running(name)
    assert mounts_below(csi) == [csi / disk.volume / "mount"]
    lines = command_lines()
    assert str(csi / disk.volume) in lines
    assert KEY not in lines
    assert "an-access-key" not in lines
    seen = f"grep -c JuiceFS:{disk.name} /proc/mounts"
    reader = f"until test -s /mnt/set/file; do sleep 0.05; done; cat /mnt/set/file; {seen}"
    await disk.run("reader", reader)
    await disk.pods.ended("reader")
    assert await disk.pods.log("reader") == "from writer\n1\n"
    await disk.pods.delete("writer", gracePeriodSeconds=0)
    await disk.pods.gone("writer")
    assert mounts_below(csi)
    await disk.pods.delete("other")
    await unmounted(csi)
    # What was written is in the bucket, and there again at the next mount.
    await disk.run("again", "cat /mnt/set/file")
    await disk.pods.ended("again")
    assert await disk.pods.log("again") == "from writer\n"
    await unmounted(csi)


@needs_fuse
async def test_a_read_only_claim_cannot_be_written(disk: Disk) -> None:
    await disk.create()
    # Two pipes have no order: the message of the shell goes to that of the output.
    main = shell("exec 2>&1; echo x > /mnt/set/file || echo refused", volumeMounts=MOUNTS)
    read_only = [{"name": "v", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}}]
    await disk.pods.create("p", main, volumes=read_only)
    await disk.pods.ended("p")
    message, refused = (await disk.pods.log("p")).splitlines()
    assert "Read-only file system" in message
    assert refused == "refused"


@needs_fuse
async def test_what_cannot_be_mounted_waits_and_says_why_without_its_secret(disk: Disk) -> None:
    await disk.create(options="no-such-option=1")
    pod = await disk.run("p", "true")
    said = await events(disk.pods, pod, "FailedMount")
    assert said[0] == (
        f'MountVolume.SetUp failed for volume "{disk.volume}" : juicefs mount failed: Incorrect Usage: '
        "flag provided but not defined: -no-such-option"
    )
    waiting = (await disk.pods.api.get(f"{disk.pods.base}/pods/p")).ok()
    assert state(waiting)["waiting"]["reason"] == "ContainerCreating"
    everything = str((await disk.pods.api.get(f"{disk.pods.base}/events")).ok())
    assert KEY not in everything


@needs_fuse
async def test_a_pod_waits_for_the_secret_of_its_volume(disk: Disk) -> None:
    await disk.create()
    complete = (await disk.pods.api.get(disk.secret)).ok()["data"]
    (await disk.pods.api.patch(disk.secret, {"data": {"metaurl": None}})).ok()
    pod = await disk.run("p", "echo mounted > /mnt/set/x; cat /mnt/set/x")
    said = await events(disk.pods, pod, "FailedMount")
    assert said[0].endswith("the Secret of the volume lacks metaurl")
    (await disk.pods.api.patch(disk.secret, {"data": complete})).ok()
    await disk.pods.ended("p")
    assert await disk.pods.log("p") == "mounted\n"


async def test_a_node_without_the_command_says_so(
    cluster: Cluster, api: KubeClient, namespace: str, tmp_path: Path
) -> None:
    bare = Node(cluster, tmp_path / "node", "--juicefs", str(tmp_path / "nothing")).start()
    disk = Disk(Pods(api, namespace, bare), tmp_path)
    try:
        await disk.create()
        pod = await disk.run("p", "true")
        said = await events(disk.pods, pod, "FailedMount")
        assert f'MountVolume.SetUp failed for volume "{disk.volume}" : JuiceFS cannot be mounted: ' in said[0]
        assert why_no_fuse() or "this node has no juicefs command" in said[0]
    finally:
        await bare.remove(api)
        await remove(api, f"{VOLUMES}/{disk.volume}")


@needs_fuse
async def test_a_killed_agent_leaves_no_mount_that_its_next_start_does_not_take_off(
    cluster: Cluster, api: KubeClient, namespace: str, tmp_path: Path
) -> None:
    own = Node(cluster, tmp_path / "node").start()
    disk = Disk(Pods(api, namespace, own), tmp_path)
    csi = own.data_dir / "csi"
    try:
        await disk.create()
        counting = "echo x >> /mnt/set/starts; echo start $(wc -l < /mnt/set/starts); exec sleep 1000"
        await disk.run("always", counting, restartPolicy="Always")
        await disk.pods.logged("always", "start 1")
        # Both at once, as when the machine has no memory left: alone, juicefs would unmount.
        for pid in find_marked(f"{csi.resolve()}/"):
            os.kill(pid, signal.SIGKILL)
        own.stop(kill=True)
        assert mounts_below(csi)
        own.start()
        await disk.pods.logged("always", "start 2")
        assert mounts_below(csi) == [csi / disk.volume / "mount"]
        own.stop(kill=True)
        await unmounted(csi)
    finally:
        await own.remove(api)
        await remove(api, f"{VOLUMES}/{disk.volume}")

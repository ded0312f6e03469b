"""The command `jobgate dev`: runs a gateway with an embedded database and an embedded cluster.

    data_dir/postgres   the embedded PostgreSQL server, a child process
    data_dir/cluster    the embedded cluster, a child process that is reached through its kubeconfig

Both children end with this process, however it ends. The next start removes what they may have left.
"""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

import structlog

from app import bootstrap
from app.embedded_postgres.server import EmbeddedPostgres
from app.settings import Settings

log = structlog.get_logger()

CLUSTER_START = 30.0  # seconds
CLUSTER_STOP = 10.0
KUBECONFIG_LINE = "KUBECONFIG="
RUNTIME_IMAGE = "jobgate"  # an image that the embedded node maps to a local command


class NotStarted(Exception):  # noqa: N818 - a message for the operator
    """A child process did not start. The message says which one, and names its log."""


def _opened_log(data_dir: Path) -> BinaryIO:
    data_dir.mkdir(parents=True, exist_ok=True)
    return (data_dir / "cluster.log").open("ab")


@asynccontextmanager
async def embedded_cluster(data_dir: Path, *, arguments: tuple[str, ...] = ()) -> AsyncIterator[Path]:
    """Run an embedded cluster as a child process, and yield the path of its kubeconfig."""
    with _opened_log(data_dir) as log_file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "devcluster", "--parent", str(os.getpid()), "--data-dir", str(data_dir)),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=log_file,
            start_new_session=True,  # Ctrl-C must not reach the child: `_stop` ends it, after the gateway
        )
        try:
            yield await _announced(process, data_dir)
        finally:
            await _stop(process)


async def _announced(process: asyncio.subprocess.Process, data_dir: Path) -> Path:
    assert process.stdout is not None
    line = b""
    try:
        async with asyncio.timeout(CLUSTER_START):
            line = await process.stdout.readline()
    except TimeoutError:
        pass
    text = line.decode().strip()
    if not text.startswith(KUBECONFIG_LINE):
        raise NotStarted(f"the embedded cluster did not start; its log is {data_dir / 'cluster.log'}")
    return Path(text.removeprefix(KUBECONFIG_LINE))


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(CLUSTER_STOP):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def _keep(postgres: EmbeddedPostgres) -> None:
    """Restart the database whenever it ends."""
    while True:
        await postgres.wait()
        log.warning("postgres.died", log=str(postgres.log_file))
        await postgres.start()


@asynccontextmanager
async def embedded(data_dir: Path, kubeconfig: str | None) -> AsyncIterator[tuple[str, str]]:
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


def kubeconfig_line(kubeconfig: str) -> str:
    """Return the line that makes kubectl in a shell use this cluster."""
    return f"export KUBECONFIG={shlex.quote(kubeconfig)}"


async def run(settings: Settings, data_dir: Path, *, on_ready: Callable[[str, str], None], stop: asyncio.Event) -> None:
    """Serve until `stop`.

    `on_ready` is called with the URL and the kubeconfig once requests are answered and a controller runs.
    """
    async with embedded(data_dir, settings.kubeconfig) as (url, kubeconfig):
        changed = settings.model_copy(update={"database_url": url, "kubeconfig": kubeconfig})
        if settings.kubeconfig is None and not settings.runtime_image:
            changed = changed.model_copy(update={"runtime_image": RUNTIME_IMAGE})
        await bootstrap.serve(changed, on_ready=lambda url: on_ready(url, kubeconfig), stop=stop, migrate=True)

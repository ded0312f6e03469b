"""The server process: the HTTP server, the job queue and the cache status, until a signal arrives."""

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override

from cacheserver.config import RuntimeConfig
from cacheserver.engine.cache_engine import engine_for
from cacheserver.engine.cache_status import pauses
from cacheserver.errors import StartupError
from cacheserver.programs import commands, confinement
from cacheserver.server.http_api import application
from cacheserver.server.job_queue import JobQueue
from cacheserver.server.status_loop import CacheInfoLoop
from cacheserver.server.store import FileStore

_SHUTDOWN_SECONDS = 5  # for the requests in progress

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The flags of the command `server`."""

    config: RuntimeConfig
    driver: str = "juicefs"
    host: str = "0.0.0.0"  # noqa: S104 - the address of the pod is not known in advance; the token protects
    port: int = 7716
    server_dir: Path = Path("/runtime")
    interval: float = 30.0
    token_file: Path | None = None

    def check(self) -> None:
        """Raise StartupError if the settings are not safe."""
        paths = [self.server_dir, *self.config.cache_dirs, *([self.config.data_dir] if self.config.data_dir else [])]
        for path in paths:
            if not path.is_absolute() or ".." in path.parts:
                raise StartupError(f"{path} is not an absolute path")
        if self.token_file is None and not _is_loopback(self.host):
            raise StartupError("without --token-file it serves on loopback only: give one, or --serverHost 127.0.0.1")
        if self.interval <= 0 or self.config.timeout <= 0:
            raise StartupError("interval and timeout are seconds above zero")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def serve(settings: ServerSettings, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        StartupError: the settings, the directory or the address cannot be used.
    """
    settings.check()
    stop = asyncio.Event()
    engine_for(settings.driver, settings.config)  # fails before a directory is created
    with _stopping(stop), contextlib.closing(_opened_store(settings)) as store, _listening(settings) as listening:
        # The lock of the store is held: no other server of this directory can be alive, and its processes are orphans.
        killed = commands.kill_orphans(store.identity)
        if killed:
            log.warning("%d processes of an earlier server were killed", killed)
        environment = {commands.RUNTIME_VARIABLE: store.identity}
        secrets = (settings.server_dir, *([settings.token_file] if settings.token_file else []))
        config = replace(settings.config, environment=environment, scratch=store.scratch(), secrets=secrets)
        if not confinement.version():
            log.warning("this kernel has no Landlock: a sync follows links that lead out of the volume")
        engine = engine_for(settings.driver, config)
        status_loop = CacheInfoLoop(store, engine, pauses(settings.interval))
        queue = JobQueue(store, engine, status_loop.after_job)
        # Before the first upload can arrive, so that the old jobs keep their place in the queue.
        _recover(queue)
        async with asyncio.TaskGroup() as group:
            server = _http_server(application(store, queue, settings.token_file), listening, on_ready)
            http = group.create_task(server.serve(sockets=[listening]))
            working = [
                group.create_task(queue.run()),
                group.create_task(status_loop.run()),
            ]
            waiting = group.create_task(stop.wait())
            await asyncio.wait({http, waiting}, return_when=asyncio.FIRST_COMPLETED)
            # Uploads that are still being answered are stored, and the next server of this directory queues them.
            server.should_exit = True
            for task in (*working, waiting):
                task.cancel()


def _opened_store(settings: ServerSettings) -> FileStore:
    try:
        return FileStore(settings.server_dir)
    except OSError as error:
        raise StartupError(f"the directory {settings.server_dir} cannot be used: {error.strerror}") from None


def _recover(queue: JobQueue) -> None:
    try:
        queue.recover()
    except OSError as error:
        raise StartupError(f"the results of unfinished jobs cannot be written: {error.strerror}") from None


@contextlib.contextmanager
def _listening(settings: ServerSettings) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listening = socket.create_server((settings.host, settings.port), family=family, backlog=128)
    except OSError as error:
        raise StartupError(f"{settings.host}:{settings.port} cannot be listened on: {error.strerror}") from None
    with listening:
        yield listening


def _http_server(application: ASGIApp, listening: socket.socket, on_ready: Callable[[str], None]) -> "_Server":
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    return _Server(config, lambda: on_ready(f"http://{shown}:{port}"))


class _Server(uvicorn.Server):
    """A uvicorn server that reports when it serves, and leaves signal handling to `serve`."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._on_ready()

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def _stopping(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

"""The server as a process: HTTP, the queue and the look at the cache, until a signal comes."""

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

from app.cache_runtime import commands, confinement
from app.cache_runtime.cache_status import pauses
from app.cache_runtime.engine import engine_for
from app.cache_runtime.errors import NotServable
from app.cache_runtime.http import application
from app.cache_runtime.jobs import JobQueue
from app.cache_runtime.places import Places
from app.cache_runtime.store import Store
from app.cache_runtime.watch import CacheWatch

_GRACEFUL = 5  # seconds that requests under way get at the end

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    places: Places
    driver: str = "juicefs"
    host: str = "0.0.0.0"  # noqa: S104 - a pod's address is not known before; the token is what protects
    port: int = 7716
    server_dir: Path = Path("/runtime")
    interval: float = 30.0
    token_file: Path | None = None

    def check(self) -> None:
        paths = [self.server_dir, *self.places.cache_dirs, *([self.places.data_dir] if self.places.data_dir else [])]
        for path in paths:
            if not path.is_absolute() or ".." in path.parts:
                raise NotServable(f"{path} is not an absolute path")
        if self.token_file is None and not _is_loopback(self.host):
            raise NotServable("without --token-file it serves on loopback only: give one, or --serverHost 127.0.0.1")
        if self.interval <= 0 or self.places.timeout <= 0:
            raise NotServable("interval and timeout are seconds above zero")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def serve(settings: ServerSettings, on_ready: Callable[[str], None]) -> None:
    """Until SIGTERM or SIGINT; raises NotServable."""
    settings.check()
    stop = asyncio.Event()
    engine_for(settings.driver, settings.places)  # an unknown one leaves no directory behind
    with _stopping(stop), contextlib.closing(_opened_store(settings)) as store, _listening(settings) as listening:
        killed = commands.kill_left_behind(store.identity)
        if killed:
            log.warning("%d processes that a dead server had left were ended", killed)
        environment = {commands.RUNTIME_VARIABLE: store.identity}
        kept = (settings.server_dir, *([settings.token_file] if settings.token_file else []))
        places = replace(settings.places, environment=environment, scratch=store.scratch(), secrets=kept)
        if not confinement.version():
            log.warning("this kernel has no Landlock: a sync follows links that lead out of the volume")
        engine = engine_for(settings.driver, places)
        watch = CacheWatch(store, engine, pauses(settings.interval))
        queue = JobQueue(store, engine, watch.after_job)
        _recover(queue)
        async with asyncio.TaskGroup() as group:
            server = _http_server(application(store, queue, settings.token_file), listening, on_ready)
            http = group.create_task(server.serve(sockets=[listening]))
            working = [
                group.create_task(queue.run()),
                group.create_task(watch.run()),
            ]
            waiting = group.create_task(stop.wait())
            await asyncio.wait({http, waiting}, return_when=asyncio.FIRST_COMPLETED)
            server.should_exit = True
            for task in (*working, waiting):
                task.cancel()


def _opened_store(settings: ServerSettings) -> Store:
    try:
        return Store(settings.server_dir)
    except OSError as error:
        raise NotServable(f"the directory {settings.server_dir} cannot be used: {error.strerror}") from None


def _recover(queue: JobQueue) -> None:
    try:
        queue.recover()
    except OSError as error:
        raise NotServable(f"what was unfinished cannot be recorded: {error.strerror}") from None


@contextlib.contextmanager
def _listening(settings: ServerSettings) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listening = socket.create_server((settings.host, settings.port), family=family, backlog=128)
    except OSError as error:
        raise NotServable(f"{settings.host}:{settings.port} cannot be listened on: {error.strerror}") from None
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
        timeout_graceful_shutdown=_GRACEFUL,
    )
    return _Server(config, lambda: on_ready(f"http://{shown}:{port}"))


class _Server(uvicorn.Server):
    """Says when it serves, and leaves signals to the process."""

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

"""The composition root. It alone makes connections, services and loops from the settings.

settings -> database, cluster -> services -> HTTP        (role api, all)
                              -> controller              (role controller, all)
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import structlog

from app import faultpoints
from app.clock import Clock, SystemClock
from app.db import installation, migrations
from app.db.engine import Database
from app.db.feed.publisher import Publisher
from app.db.notifications import FEED, INTENT, Listener, Notifier
from app.db.stuck_sessions import StuckSessions
from app.domain.planning import Planner
from app.http_server import server as http_server
from app.http_server import stalls
from app.http_server.sockets import bind, url_of
from app.k8s.api import KubeApi
from app.k8s.connection import connect
from app.k8s.errors import ClusterNotConfigured
from app.loops.cache.runtime_servers import PodAccess, PodAddressAccess, PodProxyAccess, RuntimeServers
from app.loops.context import ControllerContext
from app.loops.controller import Controller
from app.loops.leadership.controller_state import ControllerCondition
from app.loops.leadership.lease import Leadership, lease_timeouts
from app.loops.maintenance.uninstall import uninstall as remove_everything
from app.loops.supervisor import Loop, Supervisor
from app.main import create_app
from app.readiness import Condition, Readiness, StoredController
from app.services.access import OpenAccess
from app.services.cluster_dry_run import ClusterChecker, ClusterDryRun, NoCluster
from app.services.gateway import Services
from app.services.logs import ClusterLogs
from app.services.oidc.sign_in import token_access
from app.services.system import Check
from app.settings import ENV_PREFIX, Settings
from app.shutdown import Watchdog
from app.telemetry import tracing

log = structlog.get_logger(__name__)

GRACEFUL_SHUTDOWN = 5  # seconds for open requests to end; streams end at once
FEED_POLL = 1.0  # seconds; polling finds what a lost notification announced


# Serves requests, or waits, while the loops of the process run. The process ends when it returns.
Front = Callable[[Services], Awaitable[None]]


class NotConfigured(Exception):  # noqa: N818 - a message for the operator
    """A setting is missing or forbidden. The message is for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """The open connections of a process. `api` is None in an API process without a configured cluster."""

    clock: Clock
    db: Database
    controller_db: Database
    lease_db: Database
    api: KubeApi | None
    pod_access: PodAccess
    listener: Listener
    notifier: Notifier
    publisher: Publisher
    installation: installation.Installation


async def serve(
    settings: Settings, *, on_ready: Callable[[str], None], stop: asyncio.Event, migrate: bool = False
) -> None:
    """Run the role of the settings until `stop`. `on_ready` gets the URL once the server answers requests.

    Raises:
        NotConfigured: a setting is missing or forbidden.
    """
    refuse_open_access_to_others(settings)
    with listening_socket(settings.host, settings.port) as listening:
        settings = with_server_url(settings, listening)
        await run_role(
            settings,
            lambda services: _serve_http(listening, settings, services, on_ready, stop),
            unready=stop,
            migrate=migrate,
        )


async def run_role(
    settings: Settings,
    front: Front,
    *,
    unready: asyncio.Event,
    migrate: bool = False,
    controller_beside: bool = False,
) -> None:
    """Open the connections and run the loops of the role of the settings, until `front` returns.

    `/readyz` is not ready once `unready` is set. With `controller_beside`, it also reports the controller of another
    process, from what that stores in Postgres.

    Raises:
        NotConfigured: a setting is missing or forbidden.
    """
    faultpoints.arm(os.environ)
    async with tracing.exported(os.environ), connections(settings, migrate=migrate) as opened:
        planner = _planner(settings, opened)
        controller = _controller(settings, opened, planner) if settings.role != "api" else None
        condition = _condition(settings, opened, controller, beside=controller_beside)
        services = _services(settings, opened, planner, condition, unready)
        loops: dict[str, Loop] = {
            "notifications": opened.listener.run,
            "notifier": opened.notifier.run,
            "publisher": opened.publisher.run,
            "stuck sessions": StuckSessions(opened.db).run,
            "services": services.run,
        }
        if controller is not None:
            loops["controller"] = controller.run
        watchdog = Watchdog(opened.clock)
        if controller is not None:
            watchdog.limit(controller.overdue, settings.lease_grace)
        with watchdog.running():
            async with asyncio.TaskGroup() as group:
                supervisor = group.create_task(Supervisor(loops, opened.clock).run())
                await front(services)
                supervisor.cancel()


@asynccontextmanager
async def connections(settings: Settings, *, migrate: bool) -> AsyncIterator[Connections]:
    """Open all connections, and close them in reverse order."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        url, api = await _required(settings, stack)
        if migrate:
            await asyncio.to_thread(migrations.migrate, url)
        elif pending := await asyncio.to_thread(migrations.check, url):
            raise NotConfigured("; ".join(pending))
        db = await _open(stack, url, pool_size=settings.database_pool_size, timeouts=settings.database_timeouts())
        # The controller has its own pools, so that it never waits for requests. They connect when they are first used.
        controller_db = await _open(
            stack,
            url,
            pool_size=settings.controller_pool_size,
            min_size=0,
            timeouts=settings.controller_database_timeouts(),
            name="controller",
        )
        lease_db = await _open(
            stack,
            url,
            pool_size=1,
            min_size=0,
            timeouts=lease_timeouts(settings.lease_seconds),
            name="lease",
        )
        access = _pod_access(settings, api)
        stack.push_async_callback(access.close)
        notifier = Notifier(db)
        yield Connections(
            clock=clock,
            db=db,
            controller_db=controller_db,
            lease_db=lease_db,
            api=api,
            pod_access=access,
            listener=Listener(url),
            notifier=notifier,
            publisher=Publisher(db, notifier),
            installation=await installation.get_or_create(db, uuid4(), clock.now()),
        )


async def _open(stack: AsyncExitStack, url: str, **options: Any) -> Database:
    db = await Database.open(url, **options)
    stack.push_async_callback(db.close)
    return db


async def uninstall(settings: Settings) -> Mapping[str, int]:
    """Remove all objects of this installation from the cluster, and count them by kind.

    Raises:
        NotConfigured: a setting is missing, or a controller is running.
        KubeError: the cluster did not answer.
    """
    async with connections(settings, migrate=False) as opened:
        assert opened.api is not None
        leadership = Leadership(opened.lease_db, opened.clock, ttl=settings.lease_seconds, renew_every=1.0)
        try:
            async with asyncio.timeout(settings.lease_seconds + 1.0):
                await leadership.acquire()
        except TimeoutError:
            raise NotConfigured("a controller of this installation is running: stop it first") from None
        try:
            async with asyncio.TaskGroup() as group:
                keeper = group.create_task(leadership.keep())
                deleted = await remove_everything(
                    opened.api,
                    leadership,
                    str(opened.installation.id),
                    namespaces=_own_namespaces(settings),
                    request_seconds=settings.request_timeout,
                )
                keeper.cancel()
        finally:
            await leadership.release()
        return deleted


def _own_namespaces(settings: Settings) -> tuple[str, ...]:
    """Return the namespaces with objects of this installation. None means all namespaces."""
    return (*settings.namespaces, settings.system_namespace) if settings.namespaces else ()


async def _required(settings: Settings, stack: AsyncExitStack) -> tuple[str, KubeApi | None]:
    """Return the URL of the database and the cluster. The error names everything that is missing."""
    missing: list[str] = []
    if settings.database_url is None:
        missing.append(f"no database: set {ENV_PREFIX}DATABASE_URL to postgresql://user:password@host/database")
    api: KubeApi | None = None
    try:
        api = await _cluster(settings)
    except NotConfigured as error:
        missing.append(str(error))
    if api is not None:
        stack.push_async_callback(api.close)
    if settings.database_url is None or missing:
        raise NotConfigured("; ".join(missing))
    return settings.database_url, api


async def _cluster(settings: Settings) -> KubeApi | None:
    """Return the cluster. Without one an API process serves only stored logs; other roles do not start."""
    try:
        limits = settings.cluster_limits()
        return await connect(kubeconfig=settings.kubeconfig, context=settings.kube_context, limits=limits)
    except ClusterNotConfigured as error:
        if settings.role == "api":
            log.warning("cluster.not_configured", error=str(error))
            return None
        raise NotConfigured(f"{error}; {ENV_PREFIX}KUBECONFIG names a kubeconfig") from error


def _pod_access(settings: Settings, api: KubeApi | None) -> PodAccess:
    return PodAddressAccess() if api is None or settings.runtime_access == "pod-address" else PodProxyAccess(api)


def _planner(settings: Settings, opened: Connections) -> Planner:
    return Planner(
        installation=str(opened.installation.id),
        limits=settings.limits(),
        site=settings.site(),
        policy=settings.policy(),
    )


def _controller(settings: Settings, opened: Connections, planner: Planner) -> Controller:
    assert opened.api is not None
    if settings.request_timeout > settings.lease_seconds / 2:
        raise NotConfigured(
            f"{ENV_PREFIX}REQUEST_TIMEOUT ({settings.request_timeout:g} s) may be at most half of "
            f"{ENV_PREFIX}LEASE_SECONDS ({settings.lease_seconds:g} s): no request starts that could outlive the lease"
        )
    return Controller(
        ControllerContext(
            api=opened.api,
            db=opened.controller_db,
            lease_db=opened.lease_db,
            listener=opened.listener,
            publisher=opened.publisher,
            clock=opened.clock,
            installation_id=opened.installation.id,
            installation_key=opened.installation.key,
            settings=settings.controller(),
            timing=settings.timing(),
            evidence=settings.evidence(),
            planner=planner,
            samples=settings.samples(),
            runtimes=RuntimeServers(opened.pod_access, timeout=settings.request_timeout),
        )
    )


def _condition(
    settings: Settings, opened: Connections, controller: Controller | None, *, beside: bool
) -> Condition | None:
    if controller is None:
        return StoredController(opened.db, opened.clock, settings.lease_seconds).condition if beside else None

    async def own() -> ControllerCondition:
        return controller.condition()

    return own


def _services(
    settings: Settings,
    opened: Connections,
    planner: Planner,
    condition: Condition | None,
    unready: asyncio.Event,
) -> Services:
    def intent_hint() -> None:
        opened.notifier.hint(INTENT)
        opened.publisher.hint()

    async def feed_hint() -> None:
        with opened.listener.subscribe(FEED) as hints:
            await hints.wait(FEED_POLL)

    oidc = settings.oidc()
    access, sign_in = (OpenAccess(), None) if settings.open_access else token_access(opened.db, opened.clock, oidc)
    ready = Readiness(opened.db, opened.clock, condition)

    async def readiness() -> Sequence[Check]:
        stopping = Check(name="shutdown", ok=False, detail="this process is about to stop")
        return [*([stopping] if unready.is_set() else ()), *await ready()]

    return Services(
        db=opened.db,
        clock=opened.clock,
        access=access,
        sign_in=sign_in,
        planner=planner,
        installation_key=opened.installation.key,
        intent_hint=intent_hint,
        feed_hint=feed_hint,
        readiness=readiness,
        log_reader=ClusterLogs(opened.api) if opened.api is not None else None,
        cluster=_cluster_checker(settings, opened),
        namespaces=settings.served_namespaces(),
        refuses_missing_namespaces=settings.missing_namespaces == "refuse",
        stale_after=timedelta(seconds=settings.stale_after),
        cache_limits=settings.cache_limits(),
        long_request_limits=settings.long_requests(),
        max_waiting_submissions=settings.max_waiting_submissions,
    )


def _cluster_checker(settings: Settings, opened: Connections) -> ClusterChecker:
    if opened.api is None:
        return NoCluster()
    if not settings.dry_run_rate:
        return NoCluster("this installation of jobgate does not involve the cluster in dry runs")
    return ClusterDryRun(opened.api, opened.clock, rate=settings.dry_run_rate)


def refuse_open_access_to_others(settings: Settings) -> None:
    if settings.open_access and not settings.serves_loopback():
        raise NotConfigured(
            f"{ENV_PREFIX}OPEN_ACCESS serves every caller as an admin, so it is allowed only on a loopback address, "
            f"not on {settings.host}: serve on 127.0.0.1, or create tokens with `jobgate token create`"
        )


async def _serve_http(
    listening: socket.socket,
    settings: Settings,
    services: Services,
    on_ready: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    """Serve until `stop`. The role controller serves only health and metrics."""
    app = create_app(services, settings.http(), serves_jobs=settings.role != "controller")
    config = http_server.uvicorn_config(app, graceful_seconds=GRACEFUL_SHUTDOWN)
    limits = http_server.with_descriptors_for(settings.server_limits())
    with stalls.watched(settings.max_stall):
        await http_server.serve(
            http_server.Server(config, listening, limits, shortcut=app.state.shortcut),
            stop,
            drain_seconds=settings.drain_seconds,
            on_ready=lambda: on_ready(url_of(listening)),
            on_close=services.close,
        )


def with_server_url(settings: Settings, listening: socket.socket) -> Settings:
    """Return the settings with the URL of this process as `server_url`, unless that is set."""
    return settings if settings.server_url else settings.model_copy(update={"server_url": url_of(listening)})


def listening_socket(host: str, port: int) -> socket.socket:
    try:
        return bind(host, port)
    except OSError as error:
        raise NotConfigured(f"cannot serve on {host}:{port}: {error.strerror}") from error

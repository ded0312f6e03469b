"""The composition root. It alone makes services and loops from the settings, with two modules that it uses.

settings -> database, cluster       -> services -> HTTP  (role api, all)
            app.running.connections -> controller        (role controller, all)
                                       app.running.controlling
                                    -> whole logs        (role logs, all)
                                       app.running.log_keeping
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from app.api.metrics import HttpMetrics
from app.api.pages.metrics import MetricsApp
from app.base import faultpoints
from app.base.clock import SystemClock
from app.db.postgres.notifications import FEED, JOB_INTENT, SAMPLE_INTENT
from app.db.postgres.stuck_sessions import StuckSessions
from app.domain.planning import Planner
from app.http_server import server as http_server
from app.http_server import stalls
from app.http_server.draining import DrainTimes
from app.http_server.limits import ServerLimits
from app.http_server.sharing import ConnectionShare
from app.http_server.sockets import bind, url_of
from app.k8s.resources import Discovery
from app.log_store import open_store
from app.loops.leadership.controller_state import ControllerCondition
from app.loops.supervisor import Loop, Supervisor
from app.running.application import create_app
from app.running.connections import Connections, NotConfigured, connections
from app.running.readiness import Condition, Readiness, StoredController
from app.running.shutdown import Watchdog
from app.services.access import OpenAccess
from app.services.gateway import Services
from app.services.logs.containers import ClusterLogs
from app.services.oidc.token_access import token_access
from app.services.reading.gang_apis import GangApis, discover, unknown
from app.services.reading.system import Check
from app.services.submitting.cluster_dry_run import ClusterChecker, ClusterDryRun, NoCluster
from app.settings import ENV_PREFIX, Settings
from app.telemetry import tracing

if TYPE_CHECKING:
    from app.loops.controller import Controller
    from app.loops.logs.keeper import LogKeeper

_CONTROLLING = frozenset({"controller", "all"})

GRACEFUL_SHUTDOWN = 5  # seconds for open requests to end; streams end at once
# A few scrapers, each with a connection or two.
_METRICS_LIMITS = ServerLimits(max_connections=64, max_connections_per_address=32)
FEED_POLL = 1.0  # seconds; polling finds what a lost notification announced


# Serves requests, or waits, while the loops of the process run. The process ends when it returns.
Front = Callable[[Services], Awaitable[None]]


async def serve(settings: Settings, *, on_ready: Callable[[str], None], stop: asyncio.Event) -> None:
    """Run the role of the settings until `stop`. `on_ready` gets the URL once the server answers requests.

    Raises:
        NotConfigured: a setting is missing or forbidden.
    """
    refuse_open_access_to_others(settings)
    with listening_socket(settings.host, settings.port) as listening, metrics_socket(settings) as for_metrics:
        settings = with_server_url(settings, listening)
        drained = asyncio.Event()
        front = HttpFront(
            listening=listening,
            for_metrics=for_metrics,
            drain=stop,
            stop=drained,
            times=DrainTimes.of(settings.drain_seconds, settings.shutdown_timeout),
            on_ready=lambda: on_ready(url_of(listening)),
            on_drained=drained.set,
        )
        await run_role(settings, lambda services: front.serve(settings, services, HttpMetrics()), unready=stop)


async def run_role(
    settings: Settings,
    front: Front,
    *,
    unready: asyncio.Event,
    controller_beside: bool = False,
) -> None:
    """Open the connections and run the loops of the role of the settings, until `front` returns.

    `/readyz` is not ready once `unready` is set. With `controller_beside`, it also reports the controller of another
    process, from what that stores in Postgres.

    Raises:
        NotConfigured: a setting is missing or forbidden.
    """
    faultpoints.arm(os.environ)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(tracing.export(os.environ))
        opened = await stack.enter_async_context(connections(settings))
        planner = _planner(settings, opened)
        controller = await _controller(stack, settings, opened, planner)
        condition = _condition(settings, opened, controller, beside=controller_beside)
        services = _services(settings, opened, planner, condition, unready)
        loops: dict[str, Loop] = {
            "notifications": opened.listener.run,
            "notifier": opened.notifier.run,
            "publisher": opened.publisher.run,
            "stuck sessions": StuckSessions(opened.db).run,
            "clock": opened.timekeeper.run,
            "services": services.run,
        }
        if controller is not None:
            loops["controller"] = controller.run
        if (keeper := await _log_keeper(stack, settings, opened)) is not None:
            loops["logs"] = keeper.run
        watchdog = Watchdog(opened.clock)
        if controller is not None:
            watchdog.limit(controller.overdue, settings.lease_grace)
        with watchdog.running():
            async with asyncio.TaskGroup() as group:
                supervisor = group.create_task(Supervisor(loops, opened.clock).run())
                await front(services)
                supervisor.cancel()


def import_parts(settings: Settings) -> None:
    """Import now what `run_role` would import when it needs it."""
    if settings.role in _CONTROLLING:
        from app.running import controlling  # noqa: F401, PLC0415 - as in `_controller`
    if settings.keeps_logs():
        from app.running import log_keeping  # noqa: F401, PLC0415 - as in `_log_keeper`
    if settings.oidc() is not None:
        from app.services.oidc import sign_in  # noqa: F401, PLC0415 - as in `token_access`


def _planner(settings: Settings, opened: Connections) -> Planner:
    return Planner(
        installation=str(opened.installation.id),
        limits=settings.limits(),
        site=settings.site(),
        policy=settings.policy(),
        requires_queue=settings.require_queue,
    )


async def _controller(
    stack: AsyncExitStack, settings: Settings, opened: Connections, planner: Planner
) -> "Controller | None":
    """Return the controller if it belongs to the role. The stack closes what it opens."""
    if settings.role not in _CONTROLLING:
        return None
    from app.running import controlling  # noqa: PLC0415 - the processes of the API do not import the modules of the controller

    return await stack.enter_async_context(controlling.controller(settings, opened, planner))


async def _log_keeper(stack: AsyncExitStack, settings: Settings, opened: Connections) -> "LogKeeper | None":
    """Return what keeps whole logs if it belongs to the role. The stack closes what it opens.

    Raises:
        NotConfigured: there is no log store for the role logs.
    """
    if not settings.keeps_logs():
        return None
    if not settings.log_store:
        raise NotConfigured(f"the role logs needs {ENV_PREFIX}LOG_STORE, such as s3://bucket/prefix")
    from app.running import log_keeping  # noqa: PLC0415 - as in `_controller`

    return await stack.enter_async_context(log_keeping.log_keeper(settings, opened))


def _condition(
    settings: Settings, opened: Connections, controller: "Controller | None", *, beside: bool
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
    def intent_hint(channel: str) -> None:
        opened.notifier.hint(channel)
        opened.publisher.hint()

    async def feed_hint() -> None:
        with opened.listener.subscribe(FEED) as hints:
            await hints.wait(FEED_POLL)

    oidc = settings.oidc()
    # The times of an issuer are those of its clock, with which that of this host agrees.
    host_clock, key = SystemClock(), opened.installation.key
    access, sign_in = (OpenAccess(), None) if settings.open_access else token_access(opened.db, host_clock, oidc, key)
    gang_apis = _gang_apis(settings, opened)
    ready = Readiness(opened.db, opened.clock, condition, unready)

    async def readiness() -> Sequence[Check]:
        # A wrong clock is no reason to take the process out of service: its deadlines do not depend on it.
        wrong = [Check(name="clock", ok=True, detail=fault)] if (fault := opened.timekeeper.fault) else []
        return [*await ready(), *wrong]

    return Services(
        db=opened.db,
        clock=opened.clock,
        host_clock=host_clock,
        access=access,
        sign_in=sign_in,
        planner=planner,
        installation_key=key,
        job_hint=partial(intent_hint, JOB_INTENT),
        sample_hint=partial(intent_hint, SAMPLE_INTENT),
        feed_hint=feed_hint,
        readiness=readiness,
        log_reader=ClusterLogs(opened.api) if opened.api is not None else None,
        log_store=open_store(settings.log_store) if settings.log_store else None,
        cluster=_cluster_checker(settings, opened, gang_apis),
        gang_apis=gang_apis,
        namespaces=settings.served_namespaces(),
        refuses_missing_namespaces=settings.missing_namespaces == "refuse",
        stale_after=timedelta(seconds=settings.stale_after),
        cache_limits=settings.cache_limits(),
        prices=settings.prices(),
        usage_labels=settings.usage_labels,
        long_request_limits=settings.long_requests(),
        keep_jobs=settings.keeping().jobs,
        max_waiting_submissions=settings.max_waiting_submissions,
    )


def _gang_apis(settings: Settings, opened: Connections) -> GangApis:
    if opened.api is None or not settings.dry_run_rate:
        return unknown
    return discover(Discovery(opened.api.get_raw, opened.clock))


def _cluster_checker(settings: Settings, opened: Connections, gang_apis: GangApis) -> ClusterChecker:
    if opened.api is None:
        return NoCluster()
    if not settings.dry_run_rate:
        return NoCluster("this installation of jobgate does not involve the cluster in dry runs")
    return ClusterDryRun(opened.api, opened.clock, rate=settings.dry_run_rate, gang_apis=gang_apis)


def refuse_open_access_to_others(settings: Settings) -> None:
    if settings.open_access and not settings.serves_loopback():
        raise NotConfigured(
            f"{ENV_PREFIX}OPEN_ACCESS serves every caller as an admin, so it is allowed only on a loopback address, "
            f"not on {settings.host}: serve on 127.0.0.1, or create tokens with `jobgate token create`"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpFront:
    """The HTTP server of one process: its sockets, and what ends it.

    `drain` and `stop` are as for `http_server.serve`. `share` is for a socket on which other processes accept too.
    """

    listening: socket.socket
    for_metrics: socket.socket | None
    drain: asyncio.Event
    stop: asyncio.Event
    times: DrainTimes
    on_ready: Callable[[], None]
    on_drained: Callable[[], None]
    share: ConnectionShare | None = None

    async def serve(self, settings: Settings, services: Services, metrics: HttpMetrics) -> None:
        """Serve the API until `stop`. The roles controller and logs serve only health and metrics."""
        app = create_app(services, settings.http(), serves_jobs=settings.role in {"api", "all"}, metrics=metrics)
        config = http_server.uvicorn_config(app, graceful_seconds=GRACEFUL_SHUTDOWN)
        limits = http_server.with_descriptors_for(settings.server_limits())
        async with metrics_served(self.for_metrics, metrics):
            with stalls.watch(settings.max_stall):
                await http_server.serve(
                    http_server.Server(config, self.listening, limits, self.share),
                    self.drain,
                    self.stop,
                    times=self.times,
                    on_ready=self.on_ready,
                    on_drained=self.on_drained,
                    on_close=services.close,
                )


@asynccontextmanager
async def metrics_served(listening: socket.socket | None, metrics: HttpMetrics) -> AsyncIterator[None]:
    """Serve the metrics on this socket while the block runs. Without a socket, nothing is served."""
    if listening is None:
        yield
        return
    config = http_server.uvicorn_config(MetricsApp(metrics), graceful_seconds=GRACEFUL_SHUTDOWN)
    server = http_server.Server(config, listening, _METRICS_LIMITS)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.run_until_exit())
        try:
            yield
        finally:
            server.should_exit = True


def metrics_socket(settings: Settings) -> AbstractContextManager[socket.socket | None]:
    """Return the socket for metrics, or None if the port of the API serves them."""
    if settings.metrics_port is None:
        return nullcontext()
    return listening_socket(settings.host, settings.metrics_port)


def with_server_url(settings: Settings, listening: socket.socket) -> Settings:
    """Return the settings with the URL of this process as `server_url`, unless that is set."""
    return settings if settings.server_url else settings.model_copy(update={"server_url": url_of(listening)})


def listening_socket(host: str, port: int) -> socket.socket:
    try:
        return bind(host, port)
    # ValueError: a name that no resolver accepts.
    except (OSError, ValueError) as error:
        raise NotConfigured(f"cannot serve on {host}:{port}: {getattr(error, 'strerror', error)}") from error

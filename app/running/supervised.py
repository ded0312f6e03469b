"""The composition of `jobgate serve --workers N`: what the supervisor shares with its processes, and what they run."""

import socket
from collections.abc import Callable
from functools import partial
from typing import Final

from app.api.metrics import HttpMetrics
from app.base.clock import SystemClock
from app.http_server import server as http_server
from app.http_server.acceptor import BACKLOG
from app.http_server.draining import DrainTimes
from app.http_server.sharing import ConnectionTable
from app.http_server.sockets import url_of
from app.k8s.connection import kubernetes_library
from app.running import bootstrap
from app.running.application import create_app
from app.running.execution import exit_status, run_loop
from app.running.shutdown import LoopPulse, Watchdog
from app.running.start_up import end_start_up
from app.running.workers.fleet import FleetTimes
from app.running.workers.link import SupervisorLink
from app.running.workers.metrics import MetricsExchange
from app.running.workers.supervisor import ProcessSupervisor
from app.services.gateway import Services
from app.settings import Settings
from app.telemetry import log_fields

_CONTROLLER: Final = "controller"
_LOGS: Final = "logs"
_SUPERVISOR: Final = "supervisor"
# Seconds after which a process whose event loop is blocked exits and is started again, because a liveness probe reaches
# another worker. Callbacks take less than a second of CPU time, which is much longer only on an overloaded machine.
BLOCKED_SECONDS: Final = 120.0


def serve(settings: Settings, *, on_ready: Callable[[str], None]) -> int:
    """Run the workers, and what else belongs to the role, until a signal; return the exit status.

    Raises:
        NotConfigured: a setting is missing or forbidden.
    """
    bootstrap.refuse_open_access_to_others(settings)
    log_fields.name_process(_SUPERVISOR)
    names = _names(settings)
    with (
        bootstrap.listening_socket(settings.host, settings.port) as listening,
        bootstrap.metrics_socket(settings) as for_metrics,
        MetricsExchange(names) as exchange,
    ):
        # Now, so that connections wait in the queue while no worker accepts.
        listening.listen(BACKLOG)
        processes = _Processes(bootstrap.with_server_url(settings, listening), listening, for_metrics, exchange)
        _prepare_fork(settings)
        supervisor = ProcessSupervisor(
            names,
            processes.run,
            workers=processes.workers,
            times=FleetTimes(drain=processes.drain.most, shutdown=settings.shutdown_timeout),
            clock=SystemClock(),
            on_started=lambda: on_ready(url_of(listening)),
            on_ended=processes.ended,
        )
        return supervisor.run()


def _names(settings: Settings) -> list[str]:
    workers = [f"worker-{number}" for number in range(settings.api_workers())]
    if settings.role != "all":
        return workers
    return [*workers, *([_LOGS] if settings.keeps_logs() else []), _CONTROLLER]


def _prepare_fork(settings: Settings) -> None:
    """Load now what the processes need, so that they share the memory and need not load it again.

    They run this code even if another version is installed before one of them is started again.
    """
    bootstrap.import_parts(settings)
    create_app()  # fills the caches of models and types
    kubernetes_library()
    end_start_up()


class _Processes:
    """What the processes share, and the work of each."""

    def __init__(
        self,
        settings: Settings,
        listening: socket.socket,
        for_metrics: socket.socket | None,
        metrics: MetricsExchange,
    ) -> None:
        self.workers = settings.api_workers()
        self.drain = DrainTimes.of(settings.drain_seconds, settings.shutdown_timeout)
        self._has_controller = settings.role == "all"
        self._settings = settings.share_of(self.workers)
        self._listening = listening
        self._for_metrics = for_metrics
        self._table = ConnectionTable(self.workers)
        self._metrics = metrics

    def ended(self, process: int) -> None:
        """Note that a process has ended, so that the others do not wait for it to accept connections."""
        if process < self.workers:
            self._table.withdraw(process)

    def run(self, process: int, link: SupervisorLink) -> int:
        """Do the work of a forked process, and return its exit status."""
        log_fields.name_process(link.name)
        clock = SystemClock()
        watchdog, pulse = Watchdog(clock), LoopPulse(clock)
        watchdog.limit(link.check_supervisor, self._settings.shutdown_timeout)
        watchdog.limit(pulse.overdue, BLOCKED_SECONDS)
        watchdog.start()
        return exit_status(lambda: run_loop(self._main(process, link, pulse)))

    async def _main(self, process: int, link: SupervisorLink, pulse: LoopPulse) -> int:
        pulse.beat()
        with link.obey_orders():
            await (self._work(process, link) if process < self.workers else self._run_loops(link))
        return 0

    async def _work(self, process: int, link: SupervisorLink) -> None:
        """Serve the API until the supervisor stops this process."""
        settings = self._settings.model_copy(update={"role": "api"})
        metrics = HttpMetrics(partial(self._metrics.collect, link.name))

        http = bootstrap.HttpFront(
            listening=self._listening,
            for_metrics=self._for_metrics,
            drain=link.drain,
            stop=link.stop,
            times=self.drain,
            on_ready=partial(_report_ready, link),
            on_drained=link.report_drained,
            share=self._table.share_of(process),
        )

        async def front(services: Services) -> None:
            async with self._metrics.serve(link.name, metrics.exposition):
                await http.serve(settings, services, metrics)

        await bootstrap.run_role(settings, front, unready=link.drain, controller_beside=self._has_controller)

    async def _run_loops(self, link: SupervisorLink) -> None:
        """Do the work of the role of this process until the supervisor stops it.

        It serves only its metrics, to the workers.
        """
        self._listening.close()
        http_server.with_descriptors_for(self._settings.server_limits())  # each log that is followed has a connection
        if self._for_metrics is not None:
            self._for_metrics.close()

        async def front(_: Services) -> None:
            async with self._metrics.serve(link.name, HttpMetrics().exposition):
                _report_ready(link)
                await link.stop.wait()

        await bootstrap.run_role(self._settings.model_copy(update={"role": link.name}), front, unready=link.stop)


def _report_ready(link: SupervisorLink) -> None:
    end_start_up()
    link.report_ready()

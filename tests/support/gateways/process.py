"""`jobgate serve` as a real process that a test can kill, freeze and start again at the same address.

The process is forked from one that has imported the program: see forked_commands.py.
"""

import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import httpx2
import pytest

from app.domain.cache.limits import ANY_CACHE_ROOTS
from tests.support.clusters.cluster import as_gateway
from tests.support.gateways.forked_commands import become_command, forks
from tests.support.machine.ports import kept_port
from tests.support.machine.stepped_clocks import HOST_STEP, install
from tests.support.waiting import until

READY = "jobgate is ready at "
# Long, because the machine may be overloaded; below the 300 s after which pytest ends a test without a useful message.
START_SECONDS = 280.0
STOP_SECONDS = 120.0
PATIENCE = 280.0  # seconds that a client repeats a request: a gateway that is killed often is unavailable for long
# Short times, so that a takeover of the lease and a restart of a replica take seconds.
QUICK = {
    "JOBGATE_LEASE_SECONDS": "3",
    "JOBGATE_REQUEST_TIMEOUT": "1",
    "JOBGATE_RESTART_BACKOFF": "0.2",
    "JOBGATE_SAMPLE_PAUSE_FACTOR": "0.2",
    "JOBGATE_OPEN_ACCESS": "true",
    # Most tests submit to a namespace as soon as it is created, which a busy controller may not know yet.
    "JOBGATE_MISSING_NAMESPACES": "wait",
    # Some tests need pods that jobgate accepts and the cluster refuses.
    "JOBGATE_POD_POLICY_ALLOW": "Sysctls",
    "JOBGATE_POD_POLICY_ANNOTATIONS": "devcluster.jobgate.dev/*",
    "JOBGATE_SERVICE_ACCOUNTS": "trainer",
    "JOBGATE_CACHE_ROOTS": ",".join(ANY_CACHE_ROOTS),
    # Sources and volumes of tests are on this machine.
    "JOBGATE_FILE_DIRECTORIES": "/",
    "JOBGATE_SOURCE_HOSTS": "127.0.0.0/8",
    "JOBGATE_LOG_FORMAT": "text",
    "JOBGATE_DRAIN_SECONDS": "0",
    # The tests kill and freeze the process that serves; tests/crash/test_workers.py does so with several.
    "JOBGATE_WORKERS": "1",
}
# For tests that do not kill the gateway: it keeps its lease even if an overloaded machine stops it for seconds.
STEADY = {"JOBGATE_LEASE_SECONDS": "15", "JOBGATE_REQUEST_TIMEOUT": "3"}


def _serve(
    port: str, environment: Mapping[str, str], log: Path, descriptors: int | None, checkout: Path | None
) -> None:
    """Run the command line in the forked child, with that environment and the output in a file."""
    from app.cli import app

    if descriptors is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    become_command(environment, log, log)
    if checkout is not None:
        os.chdir(checkout)
        os.execve(sys.executable, [sys.executable, "-m", "app.cli", "serve", "--port", port], dict(environment))
    if HOST_STEP in environment:
        install(Path(environment[HOST_STEP]), pytest.MonkeyPatch())
    app(["serve", "--port", port])


class GatewayProcess:
    """One process at a time, always on the same port. Its output is in `log`."""

    def __init__(self, port: str, database_url: str, kubeconfig: Path, directory: Path, **environment: str) -> None:
        self._environment = QUICK | environment
        self._environment |= {"JOBGATE_DATABASE_URL": database_url, "JOBGATE_KUBECONFIG": str(as_gateway(kubeconfig))}
        self._directory = directory
        self._process: ForkServerProcess | None = None
        self._port = port
        self._starts = 0
        self.url = ""
        self.descriptors: int | None = None  # limit of open files of the next process; None for the limit of this one
        self.checkout: Path | None = None  # directory with the code of the next process; None for that of this one

    @property
    def log(self) -> Path:
        return self._directory / f"gateway-{self._starts}.log"

    @property
    def pid(self) -> int:
        assert self._process is not None
        assert self._process.pid is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.exitcode is None

    def launch(self, environment: Mapping[str, str] | None = None) -> None:
        """Start the process without waiting. With a fault point, it may die before it serves."""
        assert self._process is None, "the process is already running"
        self._directory.mkdir(parents=True, exist_ok=True)
        self._starts += 1
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("JOBGATE_")}
        given = inherited | self._environment | dict(environment or {})
        arguments = (self._port, given, self.log, self.descriptors, self.checkout)
        self._process = forks.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()

    async def start(self, environment: Mapping[str, str] | None = None) -> str:
        """Start the process, wait until it serves, and return its URL."""
        self.launch(environment)
        return await self.ready()

    async def ready(self) -> str:
        line = await until(self._ready_line, what="the process is ready", within=START_SECONDS)
        self.url = line.removeprefix(READY)
        return self.url

    def _ready_line(self) -> str:
        lines = self.log.read_text().splitlines(keepends=True) if self.log.exists() else []
        line = next((line.strip() for line in lines if line.startswith(READY) and line.endswith("\n")), "")
        assert self._process is not None
        assert line or self._process.exitcode is None, f"the process ended at its start:\n{self.log.read_text()}"
        return line

    async def ended(self, within: float, what: str = "the process ends") -> int:
        """Wait until the process ends by itself, and return its exit status; negative for a signal."""
        process = self._process
        assert process is not None
        status = await until(lambda: process.exitcode, lambda _: True, what=what, within=within)
        process.close()
        self._process = None
        return status

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    async def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            await self.ended(STOP_SECONDS)

    async def stop(self) -> int:
        """Send SIGTERM, wait for the end, and return the exit status."""
        assert self._process is not None
        self._process.terminate()
        return await self.ended(STOP_SECONDS)


@asynccontextmanager
async def gateway_process(
    database_url: str, kubeconfig: Path, directory: Path, **environment: str
) -> AsyncIterator[GatewayProcess]:
    """A process that the block can start, and that is killed after the block."""
    with kept_port() as port:
        process = GatewayProcess(port, database_url, kubeconfig, directory, **environment)
        try:
            yield process
        finally:
            await process.kill()


async def answering(client: httpx2.AsyncClient, path: str, *, within: float = PATIENCE) -> httpx2.Response:
    """Wait for the first answer below 500, through failures of the server."""
    return await insist(client, "GET", path, within=within)


async def insist(
    client: httpx2.AsyncClient,
    method: str,
    path: str,
    *,
    json: object = None,
    headers: Mapping[str, str] | None = None,
    within: float = PATIENCE,
) -> httpx2.Response:
    """Repeat a request until its answer is below 500, as a patient client does."""

    async def request() -> httpx2.Response | None:
        with suppress(httpx2.TransportError):
            return await client.request(method, path, json=json, headers=headers)
        return None

    what = f"{method} {path} is answered"
    return await until(request, lambda answer: answer.status_code < 500, what=what, within=within)

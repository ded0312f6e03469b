"""`python -m bench neighbours`: how much the reads of one tenant slow down the requests of another one.

A tenant polls the status of a job and submits jobs, one request at a time, in three situations, which take turns:

    alone        nobody else sends requests
    elsewhere    another tenant reads with many connections from a second gateway, with another database
    beside       the other tenant reads in the same way from the gateway of the first one

The reads, their clients and PostgreSQL use the same cores elsewhere and beside. So the ratio of beside to elsewhere is
what the tenants share in the gateway, and the ratio to alone is what a user notices on this machine.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.embedded_postgres.server import EmbeddedPostgres
from bench.changes.checkouts import Connection
from bench.measuring.client import LoadClient, MeasurementFailed, NoCompiler, Target
from bench.measuring.gateway import gateway, new_database, new_token
from tests.support.clusters.log_cluster import log_cluster, store_running_job
from tests.support.gateways.gateway import NAMESPACE, manifest, running_gateway

_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/jobs"
_LOGS: Final = "merged log"
_LOG_BYTES: Final = 30 * 1024 * 1024
_LOG_REPLICAS: Final = 16
# The reads of the other tenant: path and number of connections.
READS: Final = {
    "status": (f"{_PATH}/job-0/status", 64),
    "lists": ("/api/v1/jobs?pageSize=100", 64),
    "summaries": ("/api/v1/jobs?pageSize=100&view=summary", 64),
    "counts": ("/api/v1/jobs/counts", 64),
    "manifests": (f"{_PATH}/job-0/manifests?pageSize=100", 16),
    "kinds": ("/api/v1/kinds", 16),
    "metrics": ("/metrics", 16),
    "livez": ("/livez", 64),
    _LOGS: (f"{_PATH}/logs/logs", 1),
}
_WARM_UP: Final = 0.5  # seconds in which all clients of the other tenant connect


def p99(values: Sequence[float]) -> float:
    """Return the 99th percentile in milliseconds."""
    ordered = sorted(values)
    return 1000 * ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)]


class Neighbour:
    """The measured tenant. It sends a request every 10 ms or, if an answer takes longer, after it."""

    def __init__(self, target: Target) -> None:
        self._target = target

    async def p99s(self, seconds: float) -> tuple[float, float]:
        """Return the p99 of polls and of submissions, each during this time."""
        connection = await Connection(self._target).open()

        def submit() -> Awaitable[object]:
            body = json.dumps(manifest(f"new-{time.monotonic_ns()}")).encode()
            return connection.ask("POST", _PATH, body)

        polls = await self._timed(seconds, lambda: connection.ask("GET", f"{_PATH}/job-0/status"))
        return p99(polls), p99(await self._timed(seconds, submit))

    async def _timed(self, seconds: float, send: Callable[[], Awaitable[object]]) -> list[float]:
        found: list[float] = []
        end = time.monotonic() + seconds
        while (began := time.monotonic()) < end:
            await send()
            took = time.monotonic() - began
            found.append(took)
            await asyncio.sleep(max(0.0, 0.01 - took))
        return found


@dataclass(frozen=True, slots=True)
class Reads:
    """The other tenant. It reads for a bounded time, with a fixed number of connections."""

    load: LoadClient
    name: str

    @asynccontextmanager
    async def running(self, target: Target, seconds: float) -> AsyncIterator[list[float]]:
        """Read from the target during the block, for this time. Afterwards, the list has the rate."""
        rates: list[float] = []
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self._read(target, seconds + _WARM_UP))
            await asyncio.sleep(_WARM_UP)
            yield rates
            rates.append(await reading)

    async def _read(self, target: Target, seconds: float) -> float:
        """Return the answers per second, or MiB per second of logs."""
        path, clients = READS[self.name]
        if self.name == _LOGS:
            return await _drain(target, path, clients, seconds)
        request = [target.request("GET", path)]
        measured = await self.load.run(target, request, clients=clients, seconds=seconds, expect=200, warmup=0.1)
        return measured.rate


async def _drain(target: Target, path: str, clients: int, seconds: float) -> float:
    arguments = (str(target.port), path, str(clients), str(seconds))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.measuring.drain", *arguments), stdin=pipe, stdout=pipe
    )
    output, _ = await process.communicate(f"{target.token}\n".encode())
    if process.returncode:
        raise MeasurementFailed(f"{target.name}: the log could not be read")
    return float(output) / seconds


@dataclass(slots=True)
class _Figures:
    """The p99 of polls and of submissions in each round, by situation, and the rates of the reads beside."""

    of: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    rates: list[float] = field(default_factory=list)

    def row(self, which: int) -> str:
        """Return the medians of the p99 and of the ratios of neighbouring rounds: 0 for polls, 1 for submissions."""
        alone, elsewhere, beside = ([pair[which] for pair in rounds] for rounds in self.of.values())
        shown = " | ".join(f"{statistics.median(times):.1f}" for times in (alone, elsewhere, beside))
        ratios = (_ratio(beside, elsewhere), _ratio(beside, alone))
        return f"{shown} | {' | '.join(f'{ratio:.1f}' for ratio in ratios)}"


def _ratio(values: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(value / other for value, other in zip(values, others, strict=True))


async def measure(arguments: argparse.Namespace, directory: Path) -> None:
    load = LoadClient.compile(directory)
    async with AsyncExitStack() as stack:
        postgres = await stack.enter_async_context(EmbeddedPostgres(directory / "postgres"))
        kubeconfig = await stack.enter_async_context(log_cluster(directory, _LOG_BYTES))

        async def start(name: str) -> tuple[Target, Target]:
            """Start a gateway with its jobs. Return it with the tokens of both tenants."""
            url = await new_database(postgres, name)
            ours = await stack.enter_async_context(
                gateway(url, directory, postgres, role="api", kubeconfig=kubeconfig, token=await new_token(url))
            )
            theirs = Target(name=name, port=ours.port, tls=False, token=await new_token(url, "other"), pids=ours.pids)
            connection = await Connection(ours).open()
            for number in range(arguments.jobs):
                await connection.ask("POST", _PATH, json.dumps(manifest(f"job-{number}")).encode())
            async with running_gateway(url) as controller:
                await store_running_job(controller, "logs", replicas=_LOG_REPLICAS)
            return ours, theirs

        ours, beside = await start("beside")
        _, elsewhere = await start("elsewhere")
        print("| reads | connections | reads/s | request | alone | elsewhere | beside | ÷ elsewhere | ÷ alone |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name in arguments.only or READS:
            figures = _Figures({"alone": [], "elsewhere": [], "beside": []})
            for _ in range(arguments.rounds):
                await _round(Neighbour(ours), Reads(load, name), (elsewhere, beside), figures, arguments.seconds)
            rate = statistics.median(figures.rates)
            for which, request in enumerate(("poll", "submission")):
                print(f"| {name} | {READS[name][1]} | {rate:.0f} | {request} | {figures.row(which)} |", flush=True)


async def _round(
    neighbour: Neighbour, reads: Reads, targets: tuple[Target, Target], figures: _Figures, seconds: float
) -> None:
    figures.of["alone"].append(await neighbour.p99s(seconds))
    for target in targets:
        async with reads.running(target, 2 * seconds) as rates:
            figures.of[target.name].append(await neighbour.p99s(seconds))
        if target.name == "beside":
            figures.rates += rates


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench neighbours", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.5, help="duration of each measurement (default 1.5)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the three situations (default 3)")
    parser.add_argument("--jobs", type=int, default=300, help="stored jobs (default 300)")
    parser.add_argument("--only", choices=READS, nargs="+", help="measure only these reads")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        try:
            asyncio.run(measure(given, Path(directory)))
        except (NoCompiler, MeasurementFailed) as error:
            print(f"bench: {error}")

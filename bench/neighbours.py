"""`python -m bench neighbours`: how much the reads of one tenant slow down the requests of another one.

A tenant polls the status of a job and submits jobs, one request at a time, while another tenant reads with many
connections from another process. Each figure is measured without and with these reads, in turn and in the same run, and
the ratio of the p99 is the result. Both tenants use one gateway process, so that they share its event loop.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from app.embedded_postgres.server import EmbeddedPostgres
from bench.checkouts import Connection
from bench.client import LoadClient, NoCompiler, Target
from bench.gateway import gateway, new_database, new_token
from tests.support.gateway import manifest

_NAMESPACE: Final = "team-a"
_PATH: Final = f"/api/v1/namespaces/{_NAMESPACE}/jobs"
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
}


def p99(values: Sequence[float]) -> float:
    """Return the 99th percentile in milliseconds."""
    ordered = sorted(values)
    return 1000 * ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)]


class Neighbour:
    """The measured tenant. It sends a request every 10 ms or, if an answer takes longer, after it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._submitted = 0

    async def polls(self, seconds: float) -> list[float]:
        connection = await Connection(self._target).open()
        return await self._timed(seconds, lambda: connection.ask("GET", f"{_PATH}/job-0/status"))

    async def submissions(self, seconds: float) -> list[float]:
        connection = await Connection(self._target).open()

        def submit() -> object:
            self._submitted += 1
            body = json.dumps(manifest(f"new-{time.monotonic_ns()}")).encode()
            return connection.ask("POST", _PATH, body)

        return await self._timed(seconds, submit)

    async def _timed(self, seconds: float, send: object) -> list[float]:
        found: list[float] = []
        end = time.monotonic() + seconds
        while (began := time.monotonic()) < end:
            await send()  # type: ignore[operator]
            took = time.monotonic() - began
            found.append(took)
            await asyncio.sleep(max(0.0, 0.01 - took))
        return found


async def measure(arguments: argparse.Namespace, directory: Path) -> None:
    load = LoadClient.compile(directory)
    async with AsyncExitStack() as stack:
        postgres = await stack.enter_async_context(EmbeddedPostgres(directory / "postgres"))
        url = await new_database(postgres, "neighbours")
        ours = await stack.enter_async_context(
            gateway(url, directory, postgres, role="api", token=await new_token(url))
        )
        theirs = Target(name="other", port=ours.port, tls=False, token=await new_token(url, "other"), pids=ours.pids)
        neighbour = Neighbour(ours)
        connection = await Connection(ours).open()
        for number in range(arguments.jobs):
            await connection.ask("POST", _PATH, json.dumps(manifest(f"job-{number}")).encode())
        print("| reads of another tenant | connections | reads/s | poll p99 | ratio | submission p99 | ratio |")
        print("|---|---|---|---|---|---|---|")
        for name in arguments.only or READS:
            await _row(name, neighbour, load, theirs, arguments)


async def _row(
    name: str, neighbour: Neighbour, load: LoadClient, theirs: Target, arguments: argparse.Namespace
) -> None:
    path, clients = READS[name]
    polls: dict[bool, list[float]] = {False: [], True: []}
    submissions: dict[bool, list[float]] = {False: [], True: []}
    rates = []
    seconds = arguments.seconds
    for _ in range(arguments.rounds):
        polls[False] += await neighbour.polls(seconds)
        submissions[False] += await neighbour.submissions(seconds)
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(
                load.run(
                    theirs,
                    [theirs.request("GET", path)],
                    clients=clients,
                    seconds=2 * seconds + 1,
                    expect=200,
                    warmup=0.2,
                )
            )
            await asyncio.sleep(0.5)
            polls[True] += await neighbour.polls(seconds)
            submissions[True] += await neighbour.submissions(seconds)
        rates.append(reading.result().rate)
    figures = [(p99(of[False]), p99(of[True])) for of in (polls, submissions)]
    shown = " | ".join(f"{alone:.1f} → {beside:.1f} ms | {beside / alone:.1f}" for alone, beside in figures)
    print(f"| {name} | {clients} | {sum(rates) / len(rates):.0f} | {shown} |", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench neighbours", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of each measurement (default 3)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds without and with the reads (default 3)")
    parser.add_argument("--jobs", type=int, default=300, help="stored jobs (default 300)")
    parser.add_argument("--only", choices=READS, nargs="+", help="measure only these reads")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        try:
            asyncio.run(measure(given, Path(directory)))
        except NoCompiler as error:
            print(f"bench: {error}")

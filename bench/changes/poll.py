"""`python -m bench poll`: the CPU time of a poll, before and after a change of the program.

Clients poll the statuses of 50 jobs beside 100 000 others, answered 200 and 304. `--against` names another checkout of
the repository to compare with, in alternating rounds. A figure is the least of all rounds, because other processes of
the machine make a round slower and never faster.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from app.embedded_postgres.server import EmbeddedPostgres
from bench.changes.checkouts import Side, run_gateway, sides_of
from bench.comparison import throughput
from bench.comparison.throughput import in_turn
from bench.measuring.client import LoadClient, Measured
from bench.measuring.report import table

_HEAD = ("clients", "answer", "side", "gateway us", "PostgreSQL us", "all us", "polls/s", "p50 ms", "p99 ms", "failed")


def row(clients: int, answer: int, side: Side, runs: Sequence[Measured]) -> tuple[str, ...]:
    def least(*processes: str) -> str:
        return (
            f"{min(sum(run.server_cpu[name] for name in processes) / run.rate for run in runs if run.rate) * 1e6:.0f}"
        )

    return (
        *(str(clients), str(answer), side.name, least("jobgate"), least("postgres"), least("jobgate", "postgres")),
        f"{max(run.rate for run in runs):.0f}",
        *(f"{min(latency) * 1e3:.1f}" for latency in ([run.p50 for run in runs], [run.p99 for run in runs])),
        str(sum(run.failures for run in runs)),
    )


async def run(arguments: argparse.Namespace) -> None:
    sides = sides_of(arguments.against)
    rows = []
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        client = LoadClient.compile(folder)
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(EmbeddedPostgres(folder / "postgres"))
            requests = []
            for side in sides:
                await stack.enter_async_context(run_gateway(side, folder, postgres, jobs=arguments.jobs))
                await throughput.prepare_poll(side.target, None)
                requests.append(await throughput.poll_requests(side.target))
            measure = partial(client.run, seconds=arguments.seconds)
            for clients in arguments.clients:
                for which, answer in enumerate((200, 304)):
                    runs = [
                        partial(measure, side.target, asked[which], clients=clients, expect=answer)
                        for side, asked in zip(sides, requests, strict=True)
                    ]
                    found = await in_turn(arguments.rounds, runs)
                    rows += [row(clients, answer, side, of) for side, of in zip(sides, found, strict=True)]
    print("\n".join(table(_HEAD, rows)))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench poll", description=__doc__)
    parser.add_argument("--against", type=Path, help="another checkout to compare with")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64], help="concurrent clients (1 16 64)")
    parser.add_argument("--jobs", type=int, default=100_000, help="other stored jobs (100000)")
    parser.add_argument("--rounds", type=int, default=10, help="measurements of each side (10)")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of each measurement (1)")
    asyncio.run(run(parser.parse_args(arguments)))

"""`python -m bench submit`: the CPU time of a submission in all processes, before and after a change of the program.

Two gateways in the role `api`, this checkout and the one that `--against` names, take submissions in alternating
rounds, each into its own database on one PostgreSQL server. A figure is the least of all rounds, because other
processes of the machine make a round slower and never faster.
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
from bench.comparison.throughput import in_turn, submissions
from bench.measuring.client import LoadClient, Measured

_MICROSECONDS = 1e6


async def run(arguments: argparse.Namespace) -> None:
    sides = sides_of(arguments.against)
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        client = LoadClient.compile(folder)
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(EmbeddedPostgres(folder / "postgres"))
            for side in sides:
                await stack.enter_async_context(run_gateway(side, folder, postgres, jobs=0))
            print("| clients | side | rate | p50 ms | gateway us | PostgreSQL us | all us |\n" + "|---" * 7 + "|")
            for clients in arguments.clients:
                runs = [partial(_measured, client, side, clients, arguments.seconds) for side in sides]
                for side, found in zip(sides, await in_turn(arguments.rounds, runs), strict=True):
                    print(f"| {clients} | {side.name} | {_row(found)} |", flush=True)


async def _measured(client: LoadClient, side: Side, clients: int, seconds: float) -> Measured:
    request, _ = submissions(side.target, None)
    return await client.run(side.target, [request], clients=clients, seconds=seconds, expect=201)


def _row(runs: Sequence[Measured]) -> str:
    rate, p50 = max(run.rate for run in runs), min(run.p50 for run in runs)
    gateway, database = (
        min(run.server_cpu[name] / run.rate for run in runs) * _MICROSECONDS for name in ("jobgate", "postgres")
    )
    whole = min(run.cpu_per_operation for run in runs) * _MICROSECONDS
    return f"{rate:.0f}/s | {p50 * 1000:.1f} | {gateway:.0f} | {database:.0f} | {whole:.0f}"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench submit", description=__doc__)
    parser.add_argument("--against", type=Path, help="another checkout to compare with")
    parser.add_argument("--clients", type=int, nargs="+", default=[16, 64], help="concurrent submitters (16 64)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each side (5)")
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of each round (3)")
    asyncio.run(run(parser.parse_args(arguments)))

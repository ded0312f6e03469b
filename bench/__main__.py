"""`python -m bench`: measures all figures in one run of a few minutes. The exit status is 0, whatever the figures are;
only `soak` also checks something.

Commands that measure one thing, `python -m bench <command> --help` lists their options:

cache    the runtime server beside the bare `juicefs` command
follow   the polls of a client beside thousands of streams and long polls
keeping  polls and submissions beside the deletion of expired jobs, and the sizes of tables
large    jobs of a thousand replicas, or many jobs on a node, beside kube-controller-manager
logs     ranges, times and searches of a log of a gigabyte that is kept whole
memory   the peak memory with many planned replicas
migrations how long writes wait while the schema of a million jobs is migrated
neighbours the requests of one tenant beside the reads of another
poll     the CPU time of a poll, in two checkouts
queues   jobs that Kueue admits, beside Kueue alone and beside jobs without a queue
recovery the time of a restart beside 50 000 pods
scale    all goals of docs/benchmarks.md except neighbours and soak, in 20 minutes
soak     half an hour of submissions and polls while processes are killed
start    the time to start commands and the server, beside `python -c pass`
stored   submissions, polls and lists beside few and beside a million stored jobs
stages   the CPU time of a submission without HTTP and the database
submit   the CPU time of a submission in all processes, in two checkouts
usage    the time in which a year of usage is read
verify   `jobgate verify` on a million stored jobs, and polls and submissions beside it
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from app.embedded_postgres.server import EmbeddedPostgres
from bench import cache, keeping, large, logs, memory, migrations, recovery, scale, stages, start, usage
from bench.changes import follow, neighbours, poll, stored, submit
from bench.comparison.run import Bench
from bench.comparison.throughput import body_size
from bench.keeping import verify
from bench.measuring.client import LoadClient, MeasurementFailed, NoCompiler
from bench.measuring.gateway import durability
from bench.measuring.kubernetes import SCRIPT, ControlPlane, Unavailable, control_plane
from bench.queues import command as queues
from bench.soak import command as soak

DEADLINE = 270.0  # seconds for the whole run


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--pairs", type=int, default=3, help="runs of each side, alternating (default 3)")
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of each run (default 3)")
    parser.add_argument(
        "--clients", type=int, nargs="+", default=[16, 64], help="concurrent submitters (default 16 64)"
    )
    parser.add_argument("--batch", type=int, default=100, help="jobs in a batch (default 100)")
    parser.add_argument("--workers", type=int, help="workers of jobgate serve, by default as many as it chooses")
    parser.add_argument("--pods", type=int, default=2000, help="other pods in the polled namespace (default 2000)")
    parser.add_argument("--rates", type=float, nargs="+", default=[50, 200], help="pod transitions per second")
    parser.add_argument("--controlplane", type=Path, default=SCRIPT, help="the script that starts a control plane")
    parser.add_argument("--only", choices=("running", "lag", "submit", "poll"), nargs="+", help="run only these parts")
    parser.add_argument("--deadline", type=float, default=DEADLINE, help="seconds for the whole run")
    return parser.parse_args()


async def measure(arguments: argparse.Namespace, directory: Path) -> None:
    client = LoadClient.compile(directory)
    async with AsyncExitStack() as stack:
        postgres = await stack.enter_async_context(EmbeddedPostgres(directory / "postgres"))
        plane = await _plane(stack, arguments, directory)
        print(
            f"{os.cpu_count()} cores, {_processor()}; PostgreSQL: {await durability(postgres.url)}; "
            f"{body_size()} bytes per submission on both sides; jobgate over plain HTTP, kube-apiserver over TLS"
        )
        await Bench(arguments, directory, client, postgres, plane).run()


async def _plane(stack: AsyncExitStack, arguments: argparse.Namespace, directory: Path) -> ControlPlane | None:
    try:
        return await stack.enter_async_context(control_plane(arguments.controlplane.absolute(), directory / "k8s"))
    except Unavailable as error:
        print(f"bench: only jobgate is measured, without ratios and lag: {error}")
        return None


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"


async def main() -> None:
    arguments = parse()
    began = time.monotonic()
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        try:
            async with asyncio.timeout(arguments.deadline):
                await measure(arguments, Path(directory))
        except NoCompiler as error:
            print(f"bench: {error}")
        except TimeoutError:
            print(f"bench: not complete after {arguments.deadline:g} s; set a longer --deadline")
        except (MeasurementFailed, Unavailable) as error:
            print(f"bench: a measurement failed: {error}")
        except asyncio.CancelledError:
            print("bench: interrupted")
    print(f"\nwhole run: {time.monotonic() - began:.0f} s")


_COMMANDS: Final[Mapping[str, Callable[[list[str]], None]]] = {
    "cache": cache.main,
    "follow": follow.main,
    "keeping": keeping.main,
    "large": large.main,
    "logs": logs.main,
    "memory": memory.main,
    "migrations": migrations.main,
    "neighbours": neighbours.main,
    "poll": poll.main,
    "queues": queues.main,
    "recovery": recovery.main,
    "scale": scale.main,
    "soak": soak.main,
    "stages": stages.main,
    "start": start.main,
    "stored": stored.main,
    "submit": submit.main,
    "usage": usage.main,
    "verify": verify.main,
}

if __name__ == "__main__":
    if command := _COMMANDS.get(next(iter(sys.argv[1:]), "")):
        command(sys.argv[2:])
    else:
        asyncio.run(main())
    sys.exit(0)

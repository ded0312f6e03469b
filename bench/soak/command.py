"""`python -m bench soak`: jobs are submitted, polled and deleted at given rates while processes are killed.

A worker, the controller and the whole gateway are killed with SIGKILL in turn. The exit status is 1 if an accepted job
was lost or duplicated, if the memory or the descriptors of a process grew beyond the bound that is printed, or if a
table has more rows than are explained. Without a control plane, the embedded cluster takes its place.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from app.embedded_postgres.server import EmbeddedPostgres
from bench.measuring.client import MeasurementFailed, NoCompiler
from bench.measuring.kubernetes import SCRIPT, Unavailable, control_plane, node_agent
from bench.soak import judgement, report
from bench.soak.load import SoakRates, compile_load
from bench.soak.run import SoakPlan, SoakResult, Surroundings, soak
from bench.soak.tables import unexplained
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.clusters.kube import Cluster

_MINUTE: Final = 60.0
_NODE_PODS: Final = 400  # more would wait: the node agent starts some pods per second


@asynccontextmanager
async def _cluster(script: Path | None, folder: Path) -> AsyncIterator[tuple[Cluster, dict[str, int]]]:
    """Run a control plane, or the embedded cluster if there is none, with the roots of its process trees."""
    async with AsyncExitStack() as stack:
        if script is not None:
            plane = await stack.enter_async_context(control_plane(script, folder / "k8s"))
            yield Cluster.read(plane.kubeconfig, real=True), dict(plane.target().pids)
            return
        yield stack.enter_context(running_embedded_cluster(folder / "cluster", "--nodes", "0")), {}


def _plan(arguments: argparse.Namespace) -> SoakPlan:
    rates = SoakRates(
        submissions=arguments.submit_rate,
        polls=arguments.poll_rate,
        submitters=arguments.submitters,
        pollers=arguments.pollers,
        live=arguments.live,
        pods_every=arguments.pods_every,
    )
    return SoakPlan(rates=rates, seconds=arguments.minutes * _MINUTE, kill_every=arguments.kill_every)


def problems(result: SoakResult, plan: SoakPlan) -> list[str]:
    """Return all that is wrong, as sentences."""
    found = judgement.courses(result.samples, result.load.seconds)
    return [
        *judgement.losses(result.load, result.inventory),
        *judgement.growth_of_descriptors(found),
        *judgement.growth_of_memory(found),
        *unexplained(
            result.end,
            jobs=result.load.submitted,
            pods=result.inventory.pods,
            without_pod=result.inventory.without_pod,
            live=plan.rates.live,
        ),
    ]


def _script(given: Path) -> Path | None:
    if given.exists():
        return given.absolute()
    print(f"bench: there is no {given}, so the gateway uses the embedded cluster")
    return None


async def run(arguments: argparse.Namespace) -> int:
    plan = _plan(arguments)
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        load = compile_load(folder)
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(EmbeddedPostgres(folder / "postgres"))
            cluster, programs = await stack.enter_async_context(_cluster(_script(arguments.controlplane), folder))
            await stack.enter_async_context(node_agent(cluster.kubeconfig, folder / "node", pods=_NODE_PODS))
            around = Surroundings(folder=folder, load=load, postgres=postgres, cluster=cluster, programs=programs)
            result = await soak(plan, around)
    print("\n".join(["", *report.lines(result, judgement.courses(result.samples, result.load.seconds)), ""]))
    wrong = problems(result, plan)
    print("\n".join(wrong) or "nothing was lost or duplicated, and nothing grew beyond its bound")
    return 1 if wrong else 0


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="duration, without the recovery from kills (30)")
    parser.add_argument("--submit-rate", type=float, default=200.0, help="submissions and deletions per second (200)")
    parser.add_argument("--poll-rate", type=float, default=2000.0, help="polls per second (2000)")
    parser.add_argument("--kill-every", type=float, default=60.0, help="seconds between kills, 0 for none (60)")
    parser.add_argument("--live", type=int, default=2000, help="live jobs, at most twice as many (2000)")
    parser.add_argument("--pods-every", type=int, default=100, help="one job in so many has a pod (100)")
    parser.add_argument("--submitters", type=int, default=16, help="connections that submit, and that delete (16)")
    parser.add_argument("--pollers", type=int, default=32, help="connections that poll (32)")
    parser.add_argument("--controlplane", type=Path, default=SCRIPT, help="the script that starts a control plane")
    try:
        sys.exit(asyncio.run(run(parser.parse_args(given))))
    except (NoCompiler, MeasurementFailed, Unavailable) as error:
        sys.exit(f"bench: {error}")

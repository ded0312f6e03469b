"""`python -m bench queues`: jobs that Kueue admits, on a real control plane with the real Kueue and without nodes.

submission  the CPU time of a submission with and without a queue; the controller is stopped
admission   at each of --rates, with jobs of each size: Workloads that nobody starts, which is Kueue's own rate; Jobs of
            Kubernetes, which is its own integration with the Job controller; jobs of jobgate without and with a queue.
            The times are from the admission that a watch shows until it shows the last pod of the job
restart     the time from the lease until the controller has reconciled --jobs live jobs, without queues and with one
            Workload each, beside --workloads Workloads of others; Kueue is stopped. After --quiet 700, kube-apiserver
            reads all pages of a list of Workloads but the first one from etcd

Kueue, kube-apiserver, etcd, PostgreSQL and jobgate share the cores. kube-controller-manager and the scheduler are
stopped.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

from app.embedded_postgres.server import EmbeddedPostgres
from bench.comparison.throughput import in_turn
from bench.measuring.bodies import NUMBER, encode
from bench.measuring.client import LoadClient, Measured, MeasurementFailed, NoCompiler
from bench.measuring.gateway import gateway, new_database, new_token
from bench.measuring.kubernetes import SCRIPT, ControlPlane, Unavailable, control_plane, kueue
from bench.measuring.report import table
from bench.queues.admissions import (
    Admissions,
    Load,
    admissions_table,
    admit_batch_jobs,
    admit_jobs,
    admit_workloads,
    create_workloads,
    requests_table,
)
from bench.queues.objects import JOBS, job, make_queue
from bench.queues.restarts import Side, restart, restarts_table

PARTS = ("submission", "admission", "restart")
SIDES = {
    "workloads": "Workloads alone",
    "batch": "Jobs of Kubernetes",
    "plain": "jobs without a queue",
    "queued": "jobs with a queue",
}
_LEAST = 40  # jobs of a measurement
_CLIENTS = 16


class QueueBench:
    def __init__(
        self,
        arguments: argparse.Namespace,
        folder: Path,
        client: LoadClient,
        postgres: EmbeddedPostgres,
        plane: ControlPlane,
    ) -> None:
        self._arguments = arguments
        self._folder = folder
        self._client = client
        self._postgres = postgres
        self._plane = plane

    async def run(self) -> None:
        await make_queue(self._plane)
        await self._plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": "jobgate-system"}})
        await self._plane.stop_controllers()
        parts = {"submission": self._submission, "admission": self._admission, "restart": self._restart}
        for part in self._arguments.only:
            began = time.monotonic()
            lines = await parts[part]()
            print("\n" + "\n".join(lines) + f"\n\n{part}: {time.monotonic() - began:.0f} s", flush=True)

    async def _side(self, name: str, title: str, role: str) -> Side:
        """Create an installation."""
        url = await new_database(self._postgres, name)
        serving = partial(
            gateway,
            url,
            self._folder,
            self._postgres,
            role=role,
            kubeconfig=self._plane.kubeconfig,
            token=await new_token(url),
            workers=None,
        )
        return Side(title=title, url=url, serving=serving)

    async def _submission(self) -> list[str]:
        side = await self._side("submission", "", "api")
        async with side.serving() as target:

            async def submit(*, queued: bool) -> Measured:
                name = f"{'queued' if queued else 'other'}-{NUMBER}"
                request = target.request("POST", JOBS, encode(job(name, self._arguments.replicas[-1], queued=queued)))
                return await self._client.run(target, [request], clients=_CLIENTS, seconds=3.0, expect=201)

            titles = {"without a queue": False, "with a queue": True}
            runs = await in_turn(self._arguments.pairs, [partial(submit, queued=each) for each in titles.values()])
        return submissions_table(dict(zip(titles, runs, strict=True)))

    async def _admission(self) -> list[str]:
        runs: list[Admissions] = []
        side = await self._side("admission", "", "all")
        for replicas in self._arguments.replicas:
            for rate in self._arguments.rates:
                count = max(_LEAST, round(rate * self._arguments.seconds))
                load = Load(title="", prefix="", count=count, replicas=replicas, rate=rate)
                for name in self._arguments.sides:
                    title = f"{SIDES[name]}, {replicas} pods, {rate:g}/s"
                    run = await self._admit(side, name, replace(load, title=title, prefix=f"run-{len(runs)}"))
                    print("\n".join(admissions_table([run])[2:]), flush=True)  # in case of the deadline
                    runs.append(run)
        return [*admissions_table(runs), "", *requests_table(runs)]

    async def _admit(self, side: Side, name: str, load: Load) -> Admissions:
        match name:
            case "workloads":
                return await admit_workloads(self._client, self._plane, load)
            case "batch":
                await self._plane.script("up", "kcm")
                run = await admit_batch_jobs(self._client, self._plane, load)
                await self._plane.script("kill", "kcm")
                return run
            case _:
                async with side.serving() as target:
                    first = replace(load, prefix=f"{load.prefix}-first", count=20)  # the first jobs are slower
                    await admit_jobs(self._client, self._plane, target, first, queued=True)
                    return await admit_jobs(self._client, self._plane, target, load, queued=name == "queued")

    async def _restart(self) -> list[str]:
        jobs = self._arguments.jobs
        sides = []
        load = Load(title="", prefix="", count=jobs, replicas=1, rate=self._arguments.fill_rate)
        for name, queued in (("plain", False), ("queued", True)):
            title = f"{jobs} jobs {'with a Workload each' if queued else 'without queues'}"
            side = await self._side(name, title, "all")
            async with side.serving() as target:
                filling = replace(load, title=title, prefix=name)
                await admit_jobs(self._client, self._plane, target, filling, queued=queued)
            sides.append(side)
            print(f"{title}: all pods exist", flush=True)
        # A restart asks nothing of Kueue, which would admit the Workloads of others meanwhile.
        await self._plane.script("stop", name="kueue")
        await create_workloads(self._client, self._plane, self._arguments.workloads)
        print(f"{self._arguments.workloads} Workloads of others exist", flush=True)
        await asyncio.sleep(self._arguments.quiet)
        for turn in range(self._arguments.pairs):
            for side in sides if turn % 2 == 0 else sides[::-1]:
                await restart(side)
                print(f"{side.title}: reconciled in {side.seconds[-1]:.1f} s, CPU {side.cpu[-1]:.1f} s", flush=True)
        return restarts_table(sides)


def submissions_table(runs: Mapping[str, Sequence[Measured]]) -> list[str]:
    """Return a row for each kind of submission, with ratios of CPU times to the first one."""
    first, *_ = runs.values()
    rows = [
        (
            title,
            f"{median(run.rate for run in found):.0f}/s",
            f"{median(run.cpu_per_operation for run in found) * 1e6:.0f} us",
            f"{median(a.cpu_per_operation / b.cpu_per_operation for a, b in zip(found, first, strict=True)):.2f}",
        )
        for title, found in runs.items()
    ]
    return table(("submission", "rate", "CPU of gateway and PostgreSQL", "ratio"), rows)


async def run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        client = LoadClient.compile(folder)
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(EmbeddedPostgres(folder / "postgres"))
            plane = await stack.enter_async_context(control_plane(arguments.controlplane.absolute(), folder / "k8s"))
            await stack.enter_async_context(kueue(plane))
            async with asyncio.timeout(arguments.deadline):
                await QueueBench(arguments, folder, client, postgres, plane).run()


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench queues", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="measure only these parts")
    rates = [5.0, 10.0, 15.0, 20.0, 25.0, 50.0]
    parser.add_argument("--rates", type=float, nargs="+", default=rates, help="admissions per second (5 to 50)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement of admissions (10)")
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2], help="replicas of these jobs (1 2)")
    parser.add_argument("--sides", choices=SIDES, nargs="+", default=list(SIDES), help="who is measured (all)")
    parser.add_argument("--jobs", type=int, default=2000, help="live jobs at a restart (2000)")
    parser.add_argument("--fill-rate", type=float, default=100.0, help="at which they are submitted, per second (100)")
    parser.add_argument("--workloads", type=int, default=10_000, help="Workloads of others at a restart (10000)")
    parser.add_argument("--quiet", type=float, default=0.0, help="seconds without a change before a restart (0)")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each side, alternating (3)")
    parser.add_argument("--deadline", type=float, default=1200.0, help="seconds for the whole run (1200)")
    parser.add_argument("--controlplane", type=Path, default=SCRIPT, help="beside it is the script that starts Kueue")
    try:
        asyncio.run(run(parser.parse_args(given)))
    except* (MeasurementFailed, NoCompiler, Unavailable, TimeoutError) as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        print(f"bench: {str(error) or 'not complete in time; set a longer --deadline'}")

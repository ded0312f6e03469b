"""`python -m bench large`: the controller's cost of large jobs, beside batch/v1 Jobs on the same control plane.

Jobs are created and deleted on a control plane without nodes: from the first submission until all pods exist, and from
the first deletion until all are gone. With `--node`, a node agent runs the pods, and the first phase ends when all run.
The requests of all clients to kube-apiserver are counted. The sides take turns. `--against` names another checkout of
the repository to compare with.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import httpx2

from app.embedded_postgres.server import EmbeddedPostgres
from bench.measuring.client import MeasurementFailed, Target
from bench.measuring.gateway import gateway, new_database, new_token
from bench.measuring.kubernetes import CONTROLLERS, SCRIPT, ControlPlane, Unavailable, control_plane, node_agent
from bench.measuring.processes import cpu_seconds, tree
from bench.measuring.report import table

HERE = Path(__file__).parents[1]
NAMESPACE = "bench-large"
# For one phase: beyond this the run is given up. A node agent that shares its core starts a few pods per second.
_SECONDS = 240.0
_POD_SECONDS = 0.5
_SHOWN = 50  # pods; requests that are sent less than once for so many are not printed
_PAUSE = 0.05  # seconds between two looks at the cluster
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_RUNNING = f"{_PODS}?fieldSelector=status.phase%3DRunning&resourceVersion=0"
_JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
_OURS = f"/api/v1/namespaces/{NAMESPACE}/jobs"


class Jobs(Protocol):
    """The jobs of one side, while its programs run. `pids` are the roots of the process trees that it uses."""

    @property
    def pids(self) -> Mapping[str, int]: ...

    async def create(self, name: str, replicas: int) -> None: ...

    async def delete(self, name: str) -> None: ...


class KubernetesJobs:
    """Jobs of batch/v1, whose pods kube-controller-manager creates and deletes."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.pids = plane.target(*CONTROLLERS).pids

    async def create(self, name: str, replicas: int) -> None:
        template = _template()
        template["spec"]["restartPolicy"] = "Never"
        spec = {"parallelism": replicas, "completions": replicas, "completionMode": "Indexed", "template": template}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
        await self._plane.call("POST", _JOBS, job)

    async def delete(self, name: str) -> None:
        await self._plane.call("DELETE", f"{_JOBS}/{name}?propagationPolicy=Background")


class GatewayJobs:
    """GenericJobs, whose pods a gateway of some checkout creates and deletes."""

    def __init__(self, target: Target, plane: ControlPlane, http: httpx2.AsyncClient) -> None:
        self._http = http
        self.pids = {**target.pids, **plane.target(*CONTROLLERS).pids}

    async def create(self, name: str, replicas: int) -> None:
        task = {"type": "worker", "replicas": replicas, "template": _template()}
        job = {
            "apiVersion": "batch.tensorstack.dev/v1beta1",
            "kind": "GenericJob",
            "metadata": {"name": name},
            "spec": {"replicaSpecs": [task]},
        }
        (await self._http.post(_OURS, json=job)).raise_for_status()

    async def delete(self, name: str) -> None:
        (await self._http.delete(f"{_OURS}/{name}")).raise_for_status()


def _template() -> dict[str, Any]:
    command = ["sleep", "3600"]  # the pods run until they are deleted
    container = {"name": "main", "image": "busybox", "command": command, "resources": {"requests": {"cpu": "1m"}}}
    return {
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }


@dataclass(slots=True, kw_only=True)
class Side:
    """A competitor. `checkout` is None for Kubernetes itself."""

    name: str
    checkout: Path | None
    url: str = ""
    token: str = ""
    phases: dict[str, list["Phase"]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """How long a phase took in seconds, and the CPU seconds of each process tree and the requests in it."""

    seconds: float
    cpu: Mapping[str, float]
    requests: Mapping[str, int]


class LargeBench:
    def __init__(
        self,
        arguments: argparse.Namespace,
        folder: Path,
        postgres: EmbeddedPostgres,
        plane: ControlPlane,
        node: int | None,
    ) -> None:
        """`node` is the process id of the node agent."""
        self._arguments = arguments
        self._folder = folder
        self._postgres = postgres
        self._plane = plane
        self._node = node
        self._processes_without_pods = 0 if node is None else len(tree(node))
        self.sides = [Side(name="kube-controller-manager", checkout=None), Side(name="jobgate", checkout=HERE)]
        if arguments.against:
            self.sides.insert(1, Side(name="jobgate before", checkout=arguments.against.absolute()))

    async def run(self) -> None:
        for namespace in (NAMESPACE, "jobgate-system"):
            await self._plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        for index, side in enumerate(self.sides):
            if side.checkout is not None:
                side.url = await new_database(self._postgres, f"large_{index}")
                side.token = await new_token(side.url)
        for number in range(self._arguments.pairs):
            for side in self._in_turn(number):
                await self._one_round(side, [f"large-{number}-{job}" for job in range(self._arguments.jobs)])
        nodes = "a node agent" if self._arguments.node else "no node"
        title = f"{self._arguments.jobs} jobs of {self._arguments.replicas} replicas, {nodes}"
        self._print(title, ["create", "delete"])
        self._print_requests(["create", "delete"], self._arguments.jobs * self._arguments.replicas)

    def _in_turn(self, number: int) -> list[Side]:
        """Return the sides in the order of a round: A B, then B A, so that none always profits from the other."""
        return self.sides if number % 2 == 0 else self.sides[::-1]

    @asynccontextmanager
    async def _serving(self, side: Side) -> AsyncIterator[Jobs]:
        if side.checkout is None:
            yield KubernetesJobs(self._plane)
            return
        os.chdir(side.checkout)  # `python -m app.cli` imports the code of its working directory
        serving = gateway(
            side.url, self._folder, self._postgres, role="all", kubeconfig=self._plane.kubeconfig, token=side.token
        )
        async with serving as target:
            os.chdir(HERE)
            async with httpx2.AsyncClient(
                base_url=f"http://127.0.0.1:{target.port}",
                headers={"Authorization": f"Bearer {side.token}"},
                timeout=60,
            ) as http:
                yield GatewayJobs(target, self._plane, http)

    async def _one_round(self, side: Side, names: Sequence[str]) -> None:
        replicas = self._arguments.replicas
        count = replicas * len(names)
        async with self._serving(side) as jobs:

            async def create() -> None:
                for name in names:
                    await jobs.create(name, replicas)

            async def delete() -> None:
                for name in names:
                    await jobs.delete(name)

            created = self._run(count) if self._arguments.node else self._exist(count)
            await self._timed(side, jobs, "create", create, created)
            await self._timed(side, jobs, "delete", delete, self._exist(0))
            # Objects are gone before their processes, whose end would delay the next side.
            await _until("the node agent has ended all processes", self._is_idle, _SECONDS)

    async def _timed(
        self,
        side: Side,
        jobs: Jobs,
        phase: str,
        start: Callable[[], Awaitable[None]],
        holds: Callable[[], Awaitable[bool]],
    ) -> None:
        requests = await self._plane.requests()
        before = {name: cpu_seconds(pid) for name, pid in jobs.pids.items()}
        began = time.perf_counter()
        await start()
        pods = self._arguments.jobs * self._arguments.replicas
        await _until(f"{side.name}: {phase}", holds, _SECONDS + pods * _POD_SECONDS)
        seconds = time.perf_counter() - began
        cpu = {name: cpu_seconds(pid) - before[name] for name, pid in jobs.pids.items()}
        sent = await self._plane.requests() - requests
        side.phases.setdefault(phase, []).append(Phase(seconds=seconds, cpu=cpu, requests=sent))
        spent = ", ".join(f"{name} {used:.1f}" for name, used in cpu.items())
        print(f"{side.name:<24} {phase:<12} {seconds:6.1f} s   CPU s: {spent}", flush=True)

    def _run(self, count: int) -> Callable[[], Awaitable[bool]]:
        async def holds() -> bool:
            running = await self._plane.call("GET", _RUNNING)
            if len(running["items"]) == count:
                return True
            await asyncio.sleep(10 * _PAUSE)  # a list of thousands of pods is expensive
            return False

        return holds

    async def _is_idle(self) -> bool:
        return self._node is None or len(tree(self._node)) <= self._processes_without_pods

    def _exist(self, count: int) -> Callable[[], Awaitable[bool]]:
        async def holds() -> bool:
            # One object: the server reports how many others there are.
            page = await self._plane.call("GET", f"{_PODS}?limit=1")
            return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0)) == count

        return holds

    def _print(self, title: str, phases: Sequence[str]) -> None:
        theirs = self.sides[0]
        rows = []
        for phase in phases:
            for side in self.sides:
                done = side.phases[phase]
                times = [run.seconds for run in done]
                ratios = [a.seconds / b.seconds for a, b in zip(done, theirs.phases[phase], strict=True)]
                used = [
                    f"{median(run.cpu[name] for run in done):.1f}" if name in done[0].cpu else ""
                    for name in ("jobgate", "postgres", "apiserver", "etcd", "kcm", "scheduler")
                ]
                span = f"{min(times):.1f}-{max(times):.1f}"
                rows.append((phase, side.name, f"{median(times):.1f} s", span, f"{median(ratios):.2f}", *used))
        head = ("phase", "side", "median", "spread", "ratio")
        used_by = ("CPU s: gateway", "PostgreSQL", "kube-apiserver", "etcd", "kcm", "scheduler")
        print(f"\n{title}\n\n" + "\n".join(table((*head, *used_by), rows)) + "\n", flush=True)

    def _print_requests(self, phases: Sequence[str], pods: int) -> None:
        """Print the requests that are sent at least once for every _SHOWN pods on some side."""
        rows = []
        for phase in phases:
            names = {name for side in self.sides for run in side.phases[phase] for name in run.requests}
            for name in sorted(names):
                sent = [median(run.requests.get(name, 0) for run in side.phases[phase]) / pods for side in self.sides]
                if max(sent) >= 1 / _SHOWN:
                    rows.append((phase, name, *(f"{each:.2f}" for each in sent)))
        head = ("phase", "requests for each pod", *(side.name for side in self.sides))
        print("\n".join(table(head, rows)) + "\n", flush=True)


async def _until(what: str, holds: Callable[[], Awaitable[bool]], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            while not await holds():  # noqa: ASYNC110  what it waits for is in another process
                await asyncio.sleep(_PAUSE)
    except TimeoutError as error:
        raise MeasurementFailed(f"{what}: not within {seconds:g} s") from error


async def run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(EmbeddedPostgres(folder / "postgres"))
            plane = await stack.enter_async_context(control_plane(arguments.controlplane.absolute(), folder / "k8s"))
            node = None
            if arguments.node:
                pods = 2 * arguments.jobs * arguments.replicas
                node = await stack.enter_async_context(node_agent(plane.kubeconfig, folder / "node", pods=pods))
            await LargeBench(arguments, folder, postgres, plane, node).run()


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench large", description=__doc__)
    parser.add_argument("--against", type=Path, help="another checkout to compare with")
    parser.add_argument("--replicas", type=int, default=1000, help="replicas of each job (default 1000)")
    parser.add_argument("--jobs", type=int, default=1, help="jobs at the same time (default 1)")
    parser.add_argument("--node", action="store_true", help="run the pods on a node agent")
    parser.add_argument("--pairs", type=int, default=1, help="runs of each side, alternating (default 1)")
    parser.add_argument("--controlplane", type=Path, default=SCRIPT, help="the script that starts a control plane")
    try:
        asyncio.run(run(parser.parse_args(given)))
    except (MeasurementFailed, Unavailable) as error:
        print(f"bench: {error}")

"""`python -m bench recovery`: the time from the restart of a killed gateway until its database agrees with the cluster.

A gateway creates thousands of jobs on a control plane without controllers and nodes, and is killed with SIGKILL. Then
some pods start to run. The recovery ends when the restarted gateway reports all of them as running, and its controller
has reconciled every live job once. Afterwards every job and every pod must exist once.
"""

import argparse
import asyncio
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from os import kill
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx2

from app.embedded_postgres.server import EmbeddedPostgres
from bench.comparison.lag import running_status
from bench.measuring.bodies import NUMBER, encode, generic_job
from bench.measuring.client import LoadClient, MeasurementFailed, Target
from bench.measuring.gateway import gateway, new_database, new_token
from bench.measuring.kubernetes import SCRIPT, ControlPlane, Unavailable, control_plane
from bench.measuring.processes import cpu_seconds, tree
from bench.memory import peak_mib

NAMESPACE: Final = "bench-recovery"
_REPLICAS: Final = 5
_NODE: Final = "node-1"
_CREATE_SECONDS: Final = 3600.0
_RECOVER_SECONDS: Final = 300.0
_JOBS: Final = f"/api/v1/namespaces/{NAMESPACE}/jobs"


async def _count(plane: ControlPlane) -> int:
    page = await plane.call("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?limit=1")
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))


@asynccontextmanager
async def _client(target: Target) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {target.token}"}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{target.port}", headers=headers, timeout=60) as http:
        yield http


async def _submit(client: LoadClient, target: Target, jobs: int) -> list[str]:
    """Submit at least this number of jobs, and return the names of all."""
    request = target.request("POST", _JOBS, encode(generic_job(f"job-{NUMBER}", _REPLICAS)))
    submitted = 0
    while submitted < jobs:
        run = await client.run(target, [request], clients=16, seconds=2.0, expect=201, warmup=0)
        if run.failures:
            raise MeasurementFailed(f"a submission failed: {run.error}")
        submitted = run.next_number
    async with _client(target) as http:
        names: list[str] = []
        query: dict[str, str | int] = {"view": "summary", "pageSize": 500}
        while True:
            page = (await http.get(_JOBS, params=query)).raise_for_status().json()
            names += [job["name"] for job in page["items"]]
            if page["nextPageToken"] is None:
                return names
            query["pageToken"] = page["nextPageToken"]


async def _pods_exist(plane: ControlPlane, pods: int) -> None:
    async with asyncio.timeout(_CREATE_SECONDS):
        while (found := await _count(plane)) < pods:
            print(f"  {found} of {pods} pods exist", flush=True)
            await asyncio.sleep(20)


async def _run_pods(plane: ControlPlane, names: Sequence[str]) -> None:
    """Bind the pods of these jobs, and let them run, as a scheduler and a kubelet would."""
    await plane.ready_node(_NODE)
    for name in names:
        for rank in range(_REPLICAS):
            await plane.bind(NAMESPACE, f"{name}-worker-{rank}", _NODE)
            await plane.patch_status(NAMESPACE, f"{name}-worker-{rank}", running_status(rank))


async def _wait_for_recovery(target: Target, names: Sequence[str]) -> None:
    async with _client(target) as http, asyncio.timeout(_RECOVER_SECONDS):
        for name in names:
            while True:
                status = (await http.get(f"{_JOBS}/{name}/status")).raise_for_status().json()["status"]
                if status["aggregate"]["running"] == _REPLICAS:
                    break
                await asyncio.sleep(0.1)


async def epoch(url: str) -> int:
    connection = await asyncpg.connect(url, timeout=30)
    try:
        return int(await connection.fetchval("SELECT epoch FROM leases WHERE name = 'controller'"))
    finally:
        await connection.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """When the controller acquired the lease, and when it had reconciled every live job: perf_counter()."""

    leased: float
    reconciled: float


async def wait_for_takeover(url: str, former: int) -> Takeover:
    """Wait until a controller with an epoch after the former one reports the state Running."""
    connection = await asyncpg.connect(url, timeout=30)
    try:
        async with asyncio.timeout(_RECOVER_SECONDS):
            leased = await _when(connection, "SELECT epoch > $1 FROM leases WHERE name = 'controller'", former)
            reconciled = await _when(connection, "SELECT epoch > $1 AND state = 'Running' FROM heartbeats", former)
    finally:
        await connection.close()
    return Takeover(leased=leased, reconciled=reconciled)


async def _when(connection: Any, condition: str, former: int) -> float:
    while not await connection.fetchval(condition, former):  # noqa: ASYNC110 - the state of another program
        await asyncio.sleep(0.05)
    return time.perf_counter()


async def _check(plane: ControlPlane, url: str, names: Sequence[str]) -> None:
    connection = await asyncpg.connect(url, timeout=30)
    stored = await connection.fetchval("SELECT count(*) FROM jobs")
    await connection.close()
    pods = await _count(plane)
    print(f"{stored} jobs and {pods} pods exist; {len(names)} and {len(names) * _REPLICAS} are expected")
    if (stored, pods) != (len(names), len(names) * _REPLICAS):
        raise MeasurementFailed("a job or a pod was lost or duplicated")


async def run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        client = LoadClient.compile(folder)
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(EmbeddedPostgres(folder / "postgres"))
            plane = await stack.enter_async_context(control_plane(arguments.controlplane.absolute(), folder / "k8s"))
            await plane.namespace(NAMESPACE)
            await plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": "jobgate-system"}})
            await plane.stop_controllers()
            url = await new_database(postgres, "recovery")
            token = await new_token(url)
            serving = partial(
                gateway,
                url,
                folder,
                postgres,
                role="all",
                kubeconfig=plane.kubeconfig,
                token=token,
                workers=None,  # from two cores on, the controller has a process of its own
            )
            began = time.perf_counter()
            async with serving() as target:
                names = await _submit(client, target, -(-arguments.pods // _REPLICAS))
                pods = len(names) * _REPLICAS
                print(f"{len(names)} jobs submitted after {time.perf_counter() - began:.0f} s", flush=True)
                await _pods_exist(plane, pods)
                print(f"{pods} pods exist after {time.perf_counter() - began:.0f} s", flush=True)
                for pid in tree(target.pids["jobgate"]):
                    kill(pid, signal.SIGKILL)
                killed = time.perf_counter()
                former = await epoch(url)
            changed = names[:: max(1, len(names) // arguments.changed)]
            await _run_pods(plane, changed)
            started = time.perf_counter()
            print(f"{len(changed) * _REPLICAS} pods run; {started - killed:.0f} s after the kill, the gateway starts")
            async with asyncio.TaskGroup() as group:
                # From before the start, because the lease can be acquired before the gateway is ready.
                taking_over = group.create_task(wait_for_takeover(url, former))
                async with serving() as target:
                    print(f"ready after {time.perf_counter() - started:.1f} s", flush=True)
                    await _wait_for_recovery(target, changed)
                    takeover = await taking_over
                    ended = time.perf_counter()
                    print(f"recovered after {ended - started:.1f} s, {ended - killed:.1f} s after the kill")
                    print(f"lease acquired {takeover.leased - killed:.1f} s after the kill")
                    print(f"every live job reconciled {takeover.reconciled - takeover.leased:.1f} s after that")
                    pid = target.pids["jobgate"]
                    peak = max(map(peak_mib, tree(pid)))
                    print(f"CPU {cpu_seconds(pid):.1f} s; the largest process has {peak:.0f} MiB at its peak")
                    await _check(plane, url, names)


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench recovery", description=__doc__)
    parser.add_argument("--pods", type=int, default=50_000, help="pods that exist (50000)")
    parser.add_argument("--changed", type=int, default=100, help="jobs whose pods start in the meantime (100)")
    parser.add_argument("--controlplane", type=Path, default=SCRIPT, help="the script that starts a control plane")
    try:
        asyncio.run(run(parser.parse_args(given)))
    except* (MeasurementFailed, Unavailable) as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        print(f"bench: {error}")

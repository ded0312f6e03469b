"""`python -m bench memory`: peak memory of the processes of jobgate while they hold paused jobs with many replicas.

Every pod of these jobs has 24 kB of environment that contains its rank. The limits on the number of pods are lifted, so
that the controller is measured and not the refusal: an installation may have stored such jobs before it had limits.
Phases: submit, reconcile until every job is Paused, restart the controller, delete the jobs.
"""

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx2

from app.embedded_postgres.server import EmbeddedPostgres
from bench.measuring.client import MeasurementFailed, Target
from bench.measuring.gateway import gateway, new_database, new_token
from tests.support.clusters.cluster import running_embedded_cluster

JOBS: Final = 10
REPLICAS: Final = 10_000
RANKED_BYTES: Final = 24_000
LIFTED: Final = {"JOBGATE_MAX_REPLICAS": "100000", "JOBGATE_MAX_JOB_BYTES": str(2**40)}
_NAMESPACE: Final = "default"
_PATH: Final = f"/api/v1/namespaces/{_NAMESPACE}/jobs"


def paused_job(name: str, replicas: int, ranked_bytes: int = RANKED_BYTES) -> dict[str, Any]:
    """A paused GenericJob whose pods have that many bytes of environment that contains their rank."""
    text = "$(rank) " + "x" * 1000
    env = [{"name": f"TEXT_{number}", "value": text} for number in range(max(ranked_bytes // len(text), 1))]
    container = {"name": "main", "image": "busybox", "env": env}
    template = {"spec": {"containers": [container]}}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": name},
        "spec": {
            "runMode": {"pause": {"enabled": True}},
            "replicaSpecs": [{"type": "worker", "replicas": replicas, "template": template}],
        },
    }


def peak_mib(pid: int) -> float:
    """The peak resident size of the process (VmHWM)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


class Clock:
    """Prints each phase with its duration and the peak memory of a process."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def tell(self, phase: str, who: str, target: Target) -> None:
        now = time.monotonic()
        peak = peak_mib(target.pids["jobgate"])
        print(f"{phase:<36} {now - self._began:6.1f} s   {who:<10} peak {peak:7.1f} MiB", flush=True)
        self._began = now


async def _until(what: str, holds: Callable[[], Awaitable[bool]], seconds: float = 600.0) -> None:
    try:
        async with asyncio.timeout(seconds):
            while not await holds():  # noqa: ASYNC110  what it waits for is in another process
                await asyncio.sleep(0.2)
    except TimeoutError as error:
        raise MeasurementFailed(f"{what}: not within {seconds:g} s") from error


async def attack(directory: Path, jobs: int, replicas: int) -> None:
    clock = Clock()
    async with contextlib.AsyncExitStack() as stack:
        postgres = await stack.enter_async_context(EmbeddedPostgres(directory / "postgres"))
        cluster = stack.enter_context(running_embedded_cluster(directory / "cluster", "--nodes", "0"))
        url = await new_database(postgres, "memory")
        token = await new_token(url)
        process = partial(gateway, url, directory, postgres, kubeconfig=cluster.kubeconfig, settings=LIFTED)
        api = await stack.enter_async_context(process(role="api"))
        client = await stack.enter_async_context(
            httpx2.AsyncClient(
                base_url=f"http://127.0.0.1:{api.port}", headers={"Authorization": f"Bearer {token}"}, timeout=120
            )
        )
        clock.tell("start", "api", api)
        for number in range(jobs):
            answer = await client.post(_PATH, json=paused_job(f"job-{number}", replicas))
            if answer.status_code != 201:
                raise MeasurementFailed(f"a job was refused: {answer.text[:500]}")
        clock.tell(f"submit {jobs} jobs of {replicas} replicas", "api", api)

        async def all_are(phase: str) -> bool:
            found = [(await client.get(f"{_PATH}/job-{number}/status")).json() for number in range(jobs)]
            return all(job["status"]["phase"] == phase for job in found)

        async with process(role="controller") as controller:
            await _until("every job is paused", lambda: all_are("Paused"))
            clock.tell("reconcile until paused", "controller", controller)
        async with process(role="controller") as controller:
            for number in range(jobs):
                (await client.delete(f"{_PATH}/job-{number}")).raise_for_status()
            await _until("every job is cancelled", lambda: all_are("Cancelled"))
            clock.tell("restart and delete", "controller", controller)
        clock.tell("end", "api", api)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench memory", description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--replicas", type=int, default=REPLICAS, help="replicas of each job")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="jobgate-bench-", ignore_cleanup_errors=True) as directory:
        asyncio.run(attack(Path(directory), given.jobs, given.replicas))

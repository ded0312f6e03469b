"""`python -m tools.autoscaled_run`: records how the autoscaler resizes three jobs that share a cluster.

It writes docs/figures/autoscaled-run.json, and draws docs/figures/autoscaled-run.svg from it. `--draw` only draws. The
jobs run on a gateway of their own (`jobgate dev` with the autoscaler, on one node with 8 CPUs), whose API it reads.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2

from app.base.clock import SystemClock
from app.running.dev import embedded_cluster
from tools.autoscaled_figure import figure

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
SETTINGS = {"JOBGATE_AUTOSCALER": "on", "JOBGATE_AUTOSCALER_PERIOD": "2", "JOBGATE_AUTOSCALER_FREEZE": "4"}
READY = "jobgate is ready at "
NAMESPACE = "default"
JOBS = f"/api/v1/namespaces/{NAMESPACE}/jobs"
BOUNDS = {"vision": (1, 6), "speech": (1, 4), "ranking": (1, 4)}
SECONDS = 72
# The actions of a user by time. After each submission there is time for changes of size.
STORY: Mapping[int, tuple[str, str]] = {
    2: ("submit", "vision"),
    14: ("submit", "speech"),
    26: ("submit", "ranking"),
    42: ("submit", "report"),
    56: ("cancel", "vision"),
}


def training_job(name: str, least: int, most: int) -> dict[str, Any]:
    """Return a TrainingJob with trainers of 0.5 CPU, a master of 1.1 CPUs with etcd, and a pserver of 0.1 CPU."""

    def role(least: int, most: int, cpu: str) -> dict[str, Any]:
        size = {"min-instance": least, "max-instance": most, "grace_period_seconds": 1}
        return {**size, "entrypoint": "sleep 600", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}

    spec = {
        "image": "python:3.12-slim",
        "fault_tolerant": True,
        "master": {"grace_period_seconds": 1},
        "pserver": role(1, 1, "100m"),
        "trainer": role(least, most, "500m"),
    }
    return {
        "apiVersion": "paddlepaddle.org/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": spec,
    }


def report() -> dict[str, Any]:
    """Return a job of a fixed size that requests 1 CPU."""
    container = {"name": "main", "image": "busybox", "command": ["sleep", "600"]}
    pod = {"containers": [container | {"resources": {"requests": {"cpu": "1"}}}], "terminationGracePeriodSeconds": 1}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": "report"},
        "spec": {"replicaSpecs": [{"type": "worker", "replicas": 1, "template": {"spec": pod}}]},
    }


@asynccontextmanager
async def gateway(directory: Path) -> AsyncIterator[str]:
    """Run a gateway with a cluster of one node during the block, and yield its URL."""
    async with embedded_cluster(directory / "cluster", arguments=("--nodes", "1", "--node-cpu", "8")) as kubeconfig:
        process = await asyncio.create_subprocess_exec(
            *(
                str(Path(sys.executable).with_name("jobgate")),
                "dev",
                "--port",
                "0",
                "--data-dir",
                str(directory / "gateway"),
            ),
            *("--kubeconfig", str(kubeconfig)),
            env=os.environ | SETTINGS,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            yield await _ready(process)
        finally:
            process.terminate()
            await process.wait()


async def _ready(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        while line := (await process.stdout.readline()).decode():
            if line.startswith(READY):
                return line.removeprefix(READY).strip()
    raise SystemExit("the gateway did not start")


async def take(http: httpx2.AsyncClient) -> dict[str, Any]:
    """Run the actions of STORY, and return them with the sizes of the jobs. Times are seconds since the start."""
    loop = asyncio.get_running_loop()
    began, clock = loop.time(), SystemClock().now()
    events: list[dict[str, Any]] = []
    sizes: list[dict[str, Any]] = []
    steps = dict(STORY)
    while (now := loop.time() - began) < SECONDS:
        for second in [second for second in steps if second <= now]:
            what, name = steps.pop(second)
            await _act(http, what, name)
            events.append({"t": round(now, 1), "what": what, "job": name})
        running = await _running(http)
        if not sizes or running != sizes[-1]["running"]:
            sizes.append({"t": round(now, 1), "running": running})
        await asyncio.sleep(0.25)
    return {
        "settings": SETTINGS,
        "seconds": SECONDS,
        "events": events,
        "sizes": sizes,
        "runs": await _runs(http, clock),
    }


async def _act(http: httpx2.AsyncClient, what: str, name: str) -> None:
    if what == "cancel":
        answer = await http.post(f"{JOBS}/{name}/cancel")
    else:
        answer = await http.post(JOBS, json=training_job(name, *BOUNDS[name]) if name in BOUNDS else report())
    answer.raise_for_status()


async def _running(http: httpx2.AsyncClient) -> dict[str, int]:
    """Return the number of running trainers of each job."""
    found = {}
    for name in BOUNDS:
        answer = await http.get(f"{JOBS}/{name}/replicas")
        items = answer.json()["items"] if answer.status_code == 200 else []
        found[name] = sum(item["task"] == "trainer" and item["phase"] == "Running" for item in items)
    return found


async def _runs(http: httpx2.AsyncClient, began: datetime) -> list[dict[str, Any]]:
    """Return the runs of the autoscaler from the oldest on, with the fields that the figure shows."""
    page = (await http.get("/api/v1/autoscaler", params={"pageSize": 100})).json()
    return [
        {
            "t": round((datetime.fromisoformat(run["at"]) - began).total_seconds(), 1),
            "totalCpu": run["capacity"]["total"]["cpuMilli"],
            "requestedCpu": run["capacity"]["requested"]["cpuMilli"],
            "waiting": [job["name"] for job in run["waiting"]],
            "decisions": {found["name"]: found["message"] for found in run["decisions"]},
            "changed": [found["name"] for found in run["decisions"] if found["applied"]],
        }
        for run in reversed(page["items"])
        if run["capacity"]
    ]


async def record() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        async with gateway(Path(directory)) as url, httpx2.AsyncClient(base_url=url, timeout=30) as http:
            return await take(http)


def main(arguments: Sequence[str]) -> None:
    data = FIGURES / "autoscaled-run.json"
    if "--draw" not in arguments:
        data.write_text(json.dumps(asyncio.run(record()), indent=1) + "\n", encoding="utf-8")
    (FIGURES / "autoscaled-run.svg").write_text(figure(json.loads(data.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

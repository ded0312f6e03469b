"""Three elastic jobs share a node of declared capacity, and make room for a fourth job that waits.

It is the embedded cluster's own node, whatever control plane is under test: nobody else may use it.

    8 CPUs, 7760m of them to be requested
    each job: a master of 1000m, a pserver of 100m, trainers of 500m
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest_asyncio

from tests.behaviour.client import DEADLINE, Body, Jobs
from tests.behaviour.manifests import container, job, task
from tests.behaviour.stage import fresh_namespace, running_gateway
from tests.support.clusters.cluster import running_embedded_cluster
from tests.support.clusters.kube import connect
from tests.support.gateways.process import GatewayProcess
from tests.support.waiting import until

SETTINGS = {"JOBGATE_AUTOSCALER_PERIOD": "0.3", "JOBGATE_AUTOSCALER_FREEZE": "1"}
BOUNDS = {"first": (1, 2), "second": (1, 4), "third": (1, 4)}


@pytest_asyncio.fixture
async def stage(
    postgres_server_url: str, database_template: str, tmp_path: Path
) -> AsyncIterator[tuple[GatewayProcess, Jobs]]:
    with running_embedded_cluster(tmp_path / "cluster", "--nodes", "1", "--node-cpu", "8") as cluster:
        async with (
            running_gateway(cluster, postgres_server_url, database_template, tmp_path / "g", **SETTINGS) as gateway,
            connect(cluster) as kube,
            fresh_namespace(kube) as namespace,
            httpx2.AsyncClient(base_url=gateway.url, timeout=60) as http,
        ):
            yield gateway, Jobs(http=http, kube=kube, namespace=namespace)


def training_job(name: str, least: int, most: int) -> Body:
    def role(least: int, most: int, cpu: str) -> Body:
        requests = {"cpu": cpu, "memory": "64Mi"}
        size = {"min-instance": least, "max-instance": most}
        return {**size, "entrypoint": "sleep 600", "resources": {"requests": requests}, "grace_period_seconds": 1}

    return {
        "apiVersion": "paddlepaddle.org/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {
            "image": "python:3.12-slim",
            "fault_tolerant": True,
            "master": {"grace_period_seconds": 1},
            "pserver": role(1, 1, "0"),  # the etcd of the job requests 100m
            "trainer": role(least, most, "500m"),
        },
    }


async def last_run(jobs: Jobs) -> Body:
    runs: list[Body] = (await jobs.http.get("/api/v1/autoscaler", params={"pageSize": 1})).json()["items"]
    return runs[0] if runs else {"decisions": []}


async def run_that(jobs: Jobs, holds: Callable[[dict[str, Body]], bool]) -> dict[str, Body]:
    """The first run from now whose decisions, by the job's name, are as wanted."""

    async def decisions() -> dict[str, Body]:
        return {decision["name"]: decision for decision in (await last_run(jobs))["decisions"]}

    return await until(decisions, lambda found: found and holds(found), within=DEADLINE)


async def trainers(jobs: Jobs, name: str) -> int:
    running = [item for item in (await jobs.replicas(name)).values() if item["phase"] == "Running"]
    return sum(item["task"] == "trainer" and not item["leaving"] for item in running)


def at_rest(decisions: dict[str, Body]) -> bool:
    """All jobs run, nobody is frozen any more, and nothing is to be changed."""
    return len(decisions) == len(BOUNDS) and all(
        found["phase"] == "Running" and found["verdict"] != "Frozen" and found["fromReplicas"] == found["toReplicas"]
        for found in decisions.values()
    )


def messages(decisions: dict[str, Body]) -> dict[str, str]:
    return {name: found["message"] for name, found in decisions.items()}


async def test_three_jobs_share_what_there_is_and_make_room(stage: tuple[GatewayProcess, Jobs]) -> None:
    gateway, jobs = stage
    for name, (least, most) in BOUNDS.items():
        await jobs.submit(training_job(name, least, most))
    await run_that(jobs, lambda found: [d["phase"] for d in found.values()] == ["Running"] * 3)

    # Turned off, it says what it would do, and does nothing.
    rehearsed = (await jobs.http.post("/api/v1/autoscaler/dry-run")).json()
    assert rehearsed["capacity"]["requested"]["cpuMilli"] == 4800
    assert {found["name"]: found["toReplicas"] for found in rehearsed["decisions"]} == SHARED
    assert {name: await trainers(jobs, name) for name in BOUNDS} == dict.fromkeys(BOUNDS, 1)

    await gateway.stop()
    await gateway.start({"JOBGATE_AUTOSCALER": "on"})
    settled = await run_that(jobs, at_rest)
    assert {name: await trainers(jobs, name) for name in BOUNDS} == SHARED
    assert messages(settled) == {
        "first": "stays at 2: 2 is its most",
        "second": "stays at 3: one more would request more than 0.97 of the CPU of the cluster",
        "third": "stays at 3: one more would request more than 0.97 of the CPU of the cluster",
    }
    (record,) = (await jobs.read("second", "scale-records"))["items"]
    assert (record["fromReplicas"], record["toReplicas"], record["actor"]) == (1, 3, "autoscaler")
    assert record["reason"].startswith("grows from 1 to 3; then one more would request")

    await jobs.submit(job("newcomer", task(containers=[needing("800m")])))
    await jobs.until("newcomer", "Running")
    settled = await run_that(jobs, at_rest)
    assert {name: await trainers(jobs, name) for name in BOUNDS} == SHARED | {"first": 1}
    record = (await jobs.read("first", "scale-records"))["items"][-1]
    assert (record["fromReplicas"], record["toReplicas"], record["outcome"]) == (2, 1, "Reached")
    assert record["reason"] == "shrinks from 2 to 1: pods request more than 0.97 of the CPU of the cluster"


def needing(cpu: str) -> dict[str, Any]:
    return container(resources={"requests": {"cpu": cpu}})


SHARED = {"first": 2, "second": 3, "third": 3}

"""Clocks that step while jobs run: no deadline passes early, no back-off is cut short, and no restart is missed.

                host of the gateway          database
steps of        its wall clock               the clock that its statements read
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from tests.crash.gateways import PATIENCE, client_of
from tests.crash.stories import FOREVER, Client, generic_job, task
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.process import STEADY, gateway_process
from tests.support.machine.stepped_clocks import HOST_STEP, make_steppable, step_database, step_host
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

BACKOFF = 2.0
RESTARTS = 2
# Both times of a pod are whole seconds.
ROUNDED = timedelta(seconds=1)
ATTEMPTS = """
SELECT created_at, finished_at FROM attempts
WHERE job_uid = (SELECT uid FROM jobs WHERE name = 'crashes') ORDER BY attempt
"""

Step = Callable[[float], Awaitable[None]]


@asynccontextmanager
async def stepping(clock: str, database_url: str, file: Path) -> AsyncIterator[tuple[Any, Step]]:
    db = await asyncpg.connect(database_url)
    await make_steppable(db)
    step_host(file, 0)

    async def step(seconds: float) -> None:
        if clock == "host":
            step_host(file, seconds)
        else:
            await step_database(db, seconds)

    yield db, step
    await db.close()


def annotated(job: dict[str, Any], **annotations: str) -> dict[str, Any]:
    prefixed = {f"jobgate.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    job["metadata"]["annotations"] = prefixed
    return job


async def reported(http: httpx2.AsyncClient) -> dict[str, Any]:
    """Wait until the installation reports a wrong clock, and return the report."""

    async def clock() -> dict[str, Any]:
        found: dict[str, Any] = (await http.get("/api/v1/system")).json()["clock"]
        return found

    return await until(clock, lambda found: not found["ok"], what="a wrong clock", within=PATIENCE)


@pytest.mark.parametrize("seconds", [3600, -600])
@pytest.mark.parametrize("clock", ["host", "database"])
async def test_a_step_of_a_clock_ends_no_job_and_changes_no_back_off(
    clock: str,
    seconds: int,
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    tmp_path: Path,
) -> None:
    file = tmp_path / "step"
    settings = STEADY | {HOST_STEP: str(file), "JOBGATE_RESTART_BACKOFF": str(BACKOFF)}
    async with (
        stepping(clock, database_url, file) as (db, step),
        gateway_process(database_url, busy_cluster.kubeconfig, tmp_path / "gateway", **settings) as gateway,
    ):
        await gateway.start()
        async with client_of(gateway, crash_api, crash_namespace) as client:
            await begin(client)
            await step(seconds)
            await client.until("crashes", "Failed")
            report = await reported(client.http)
            # A job that is submitted after the report ends, so the controller has reconciled with the kept time.
            await client.submit(generic_job("later", task("worker", "exit 0")))
            await client.until("later", "Succeeded")
            assert (await client.status("runs"))["phase"] == "Running"
            pods = (await crash_api.get(f"/api/v1/namespaces/{crash_namespace}/pods")).ok()["items"]
            assert "ended-worker-0" in {pod["metadata"]["name"] for pod in pods}, "its TTL has not passed"
            ready = (await client.http.get("/readyz?verbose")).text
        attempts = [tuple(row) for row in await db.fetch(ATTEMPTS)]
        assert clock in report["message"]
        assert "[+] clock" in ready
        assert "clock.stepped" in gateway.log.read_text()
    assert len(attempts) == RESTARTS + 1
    for number, ((_, ended), (created, _)) in enumerate(pairwise(attempts)):
        assert created - ended >= timedelta(seconds=BACKOFF * 2**number) - ROUNDED, attempts


async def begin(client: Client) -> None:
    """Run a job with an active deadline, one with a TTL to its end, and one that crashes."""
    ended = annotated(generic_job("ended", task("worker", "exit 0")), ttl_seconds_after_finished="600")
    await client.submit(ended)
    await client.until("ended", "Succeeded")
    await client.submit(annotated(generic_job("runs", task("worker", FOREVER)), active_deadline_seconds="1800"))
    await client.until("runs", "Running")
    await client.submit(generic_job("crashes", task("worker", "exit 1", policy="OnFailure", limit=RESTARTS)))
    # Not the phase Restarting: a job of which no replica was ever seen running is Creating after its first failure.
    await until(
        lambda: client.status("crashes"), lambda status: status["firstFailure"], what="the first crash", within=PATIENCE
    )

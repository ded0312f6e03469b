"""`jobgate recover` after a restore from a dump, beside the controller that waits, and killed at each fault point."""

import asyncio
import json
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.base.faultpoints import FaultPoint
from tests.crash.gateways import client_of, until_ready
from tests.crash.stories import FOREVER, Client, generic_job, serves, task
from tests.crash.test_wrong_cluster import contents
from tests.support.clusters.cluster import as_gateway
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.forked_commands import jobgate
from tests.support.gateways.process import QUICK, STEADY, gateway_process
from tests.support.page_commands import run_commands
from tests.support.postgres import fresh_database
from tests.support.verification import assert_invariants
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

OF_RECOVERY = (
    FaultPoint.RECOVERY_BEGUN,
    FaultPoint.RECOVERY_STORED,
    FaultPoint.RECOVERY_RELEASED,
    FaultPoint.RECOVERY_CONTINUED,
)
CHOSEN = ("--unknown=delete", "--live=fail")


class Recovering:
    """Runs `jobgate recover` with the settings of a gateway."""

    def __init__(self, database_url: str, kubeconfig: Path, home: Path) -> None:
        self._home = home
        self.environment = QUICK | {
            "JOBGATE_DATABASE_URL": database_url,
            "JOBGATE_KUBECONFIG": str(as_gateway(kubeconfig)),
        }

    async def run(self, *options: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        given = self.environment | environment
        return await asyncio.to_thread(jobgate, "recover", *options, home=self._home, **given)

    async def found(self) -> dict[str, Any]:
        ran = await self.run("-o", "json")
        assert ran.returncode == 1, ran.stderr
        report: dict[str, Any] = json.loads(ran.stdout)
        return report


def waiting(directory: Path, then: str) -> str:
    """Return a script that waits until the test lets the jobs go on."""
    return f"while ! test -e {directory}/go; do sleep 0.1; done; {then}"


async def pod_uids(api: KubeClient, namespace: str) -> Mapping[str, str]:
    pods = (await api.get(f"/api/v1/namespaces/{namespace}/pods")).ok()["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


async def noted(api: KubeClient, database_url: str) -> None:
    """Wait until the controller has recorded the current end of the feed in the cluster."""
    connection = await asyncpg.connect(database_url)
    position = await connection.fetchval("SELECT max(seq) FROM job_events")
    installation = await connection.fetchval("SELECT id::text FROM installation")
    await connection.close()
    path = f"/api/v1/namespaces/jobgate-system/configmaps/jobgate-installation-{installation}"
    await api.eventually(path, lambda found: int(found["data"]["position"]) >= position, within=240)


async def begin(client: Client, directory: Path) -> None:
    fails = f"test -e {directory}/failed && {FOREVER}; touch {directory}/failed; exit 1"
    stories = {
        "known": task("worker", FOREVER),
        "ends": task("worker", waiting(directory, "exit 0")),
        "fails": task("worker", waiting(directory, fails), policy="OnFailure", limit=3),
        "removed": task("worker", FOREVER),
        "cancelled": task("worker", FOREVER),
    }
    for name, worker in stories.items():
        await client.submit(generic_job(name, worker))
    for name in stories:
        await client.until(name, "Running")


async def go_on(client: Client, directory: Path, database_url: str) -> None:
    """Let the jobs change after the backup."""
    (directory / "go").touch()
    await client.submit(generic_job("forgotten", task("worker", FOREVER)))
    await client.act("DELETE", "removed")
    await client.until("ends", "Succeeded")
    await client.until("forgotten", "Running")
    await until((directory / "failed").exists, within=240)
    await client.until("fails", "Running")
    await client.api.gone(f"/api/v1/namespaces/{client.namespace}/pods/removed-worker-0", within=240)
    await noted(client.api, database_url)


async def test_a_restored_dump_is_recovered_whatever_interrupts_it(
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    postgres_server_url: str,
    tmp_path: Path,
) -> None:
    config = busy_cluster.kubeconfig
    async with gateway_process(database_url, config, tmp_path / "before", **STEADY) as gateway:
        await gateway.start()
        async with client_of(gateway, crash_api, crash_namespace) as client:
            await begin(client, tmp_path)
            await asyncio.to_thread(run_commands, "recovery.md", "Dump", tmp_path, JOBGATE_DATABASE_URL=database_url)
            await go_on(client, tmp_path, database_url)
        await gateway.stop()
    async with fresh_database(postgres_server_url) as restored:
        await asyncio.to_thread(run_commands, "recovery.md", "Restore a dump", tmp_path, JOBGATE_DATABASE_URL=restored)
        recovering = Recovering(restored, config, tmp_path)
        stopping = {"JOBGATE_LEASE_WITHOUT_CONTACT": "1"}
        async with gateway_process(restored, config, tmp_path / "after", **stopping) as gateway:
            await gateway.start()
            async with client_of(gateway, crash_api, crash_namespace) as client:
                await until_ready(client.http, 503, "WrongCluster")
                await is_stopped_and_shown(client, recovering)
                for point in OF_RECOVERY:
                    ran = await recovering.run("--yes", *CHOSEN, JOBGATE_FAULT_POINTS=str(point))
                    assert ran.returncode == -9, (point, ran.stdout, ran.stderr)
                    await until_ready(client.http, 503, "has begun and not completed")
                await recovers(client, recovering, tmp_path)
                await assert_invariants(restored, busy_cluster)


async def is_stopped_and_shown(client: Client, recovering: Recovering) -> None:
    """The differences are shown, and nothing changes, also if a choice is missing."""
    before = await contents(client.api, client.namespace)
    report = await recovering.found()
    assert "older" in report["stopped"]
    shown = {job["name"]: (job["difference"], job["remedy"]) for job in report["jobs"]}
    assert shown == {
        "forgotten": ("Lost", "(choose)"),
        "ends": ("Ended", "end"),
        "fails": ("Ahead", "adopt"),
        "removed": ("Missing", "(choose)"),
    }
    counts = {name: number for name, number in report["counts"].items() if number}
    assert counts == {"Lost": 1, "Ended": 1, "Ahead": 1, "Missing": 1}
    refused = await recovering.run("--yes", "--live=fail")
    assert refused.returncode == 2
    assert f"{client.namespace}/forgotten" in refused.stderr
    assert "--unknown=release|delete" in refused.stderr
    # A cancel is accepted, and has its effect when the controller continues.
    await client.act("POST", "cancelled", "cancel")
    await until_ready(client.http, 503, "WrongCluster")
    assert (await client.status("cancelled"))["phase"] == "Running"
    assert await contents(client.api, client.namespace) == before
    assert (await recovering.found())["jobs"] == report["jobs"]


async def recovers(client: Client, recovering: Recovering, directory: Path) -> None:
    before = await pod_uids(client.api, client.namespace)
    page = partial(run_commands, "recovery.md", "Recover", directory, **recovering.environment)
    shown, second = await asyncio.gather(asyncio.to_thread(page), recovering.run("--yes", *CHOSEN))
    assert second.returncode == 0 or "the lease of the controller was not free" in second.stderr
    assert "has begun and not completed" in shown + second.stdout
    assert "Recovered. The controller continues." in shown + second.stdout
    await until_ready(client.http, 200, "Running")
    assert (await recovering.run()).stdout.startswith("Database and cluster match.")

    ended = await client.until("ends", "Succeeded")
    assert ended["reason"] == "EndedInCluster"
    lost = await client.until("removed", "Failed")
    assert lost["reason"] == "ObjectsMissing"
    adopted = await client.until("fails", "Running")
    assert adopted["phase"] == "Running"
    history = (await client.http.get(client.path("fails", "history"))).json()["items"]
    assert [row["attempt"] for row in history if row["reason"] == "Adopted"] == [2]
    await client.until("known", "Running")
    await client.until("cancelled", "Cancelled")
    await client.api.gone(f"/api/v1/namespaces/{client.namespace}/pods/forgotten-worker-0", within=240)
    assert (await client.http.get(client.path("forgotten"))).status_code == 404
    after = await pod_uids(client.api, client.namespace)
    kept = {"known-worker-0", "fails-worker-0"}
    assert {name: after.get(name) for name in kept} == {name: before[name] for name in kept}
    await serves("later", directory).run(client)

"""SIGKILL of the controller between two starts of jobs that wait for room: none is lost, none overtakes another."""

from pathlib import Path

import pytest

from app.base.faultpoints import FaultPoint
from tests.crash.gateways import client_of
from tests.crash.stories import generic_job, task
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.process import gateway_process
from tests.support.verification import assert_invariants

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]

ONE_POD = {"JOBGATE_MAX_LIVE_PODS_PER_NAMESPACE": "1", "JOBGATE_MAX_WAITING_JOBS_PER_NAMESPACE": "10"}
SIGKILLED = -9
WITHIN = 300.0
POINT = FaultPoint.ROOM_GIVEN


async def test_jobs_that_wait_for_room_survive_crashes(
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    tmp_path: Path,
) -> None:
    names, log, leave = [f"job-{number}" for number in range(5)], tmp_path / "log", tmp_path / "leave"
    async with gateway_process(database_url, busy_cluster.kubeconfig, tmp_path / "gateway", **ONE_POD) as gateway:
        await gateway.start({"JOBGATE_FAULT_POINTS": f"{POINT}:2"})
        async with client_of(gateway, crash_api, crash_namespace) as client:
            for name in names:
                # The first one leaves when all have been submitted.
                script = f"echo {name} >> {log}; while test ! -e {leave}; do sleep 0.1; done"
                await client.submit(generic_job(name, task("worker", script)))
            leave.touch()
            for faults in ({"JOBGATE_FAULT_POINTS": f"{POINT}:1"}, {}):
                assert await gateway.ended(within=WITHIN, what=POINT) == SIGKILLED
                await gateway.start(faults)
            for name in names:
                await client.until(name, "Succeeded")
        await assert_invariants(database_url, busy_cluster)
    assert log.read_text().split() == names

"""Restarts of a DIJob, which count for the job as a whole, with pods that fail at different times."""

from typing import Any

from tests.behaviour.client import Jobs
from tests.behaviour.conftest import OtherGateway

# Longer than the time between the failures of one restart, so that they overlap.
BACKOFF = "5"
Body = dict[str, Any]


def di_job(name: str, script: str, *, backoff_limit: int, replicas: int) -> Body:
    container = {"name": "di-container", "image": "busybox", "command": ["sh", "-c", script]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False}
    task = {"name": "collector", "type": "collector", "replicas": replicas, "template": {"spec": spec}}
    return {
        "apiVersion": "diengine.opendilab.org/v2alpha1",
        "kind": "DIJob",
        "metadata": {"name": name},
        "spec": {"backoffLimit": backoff_limit, "cleanPodPolicy": "Running", "tasks": [task]},
    }


async def test_failures_of_one_restart_count_once_and_every_replica_is_restarted(other_gateway: OtherGateway) -> None:
    async with other_gateway(JOBGATE_RESTART_BACKOFF=BACKOFF, JOBGATE_RESTART_BACKOFF_MAX=BACKOFF) as jobs:
        await jobs.submit(di_job("stubborn", "sleep $DI_RANK; exit 1", backoff_limit=3, replicas=4))
        await jobs.until("stubborn", "Failed")
        native = (await jobs.job("stubborn"))["nativeStatus"]
        replicas = (await jobs.replicas("stubborn")).values()
    assert (native["phase"], native["restarts"]) == ("Failed", 3)
    attempts = {replica["rank"]: replica["attempt"] for replica in replicas}
    # On a busy machine a replica may fail after the others have pods again, and then begins the next restart.
    assert max(attempts.values()) == 4
    assert min(attempts.values()) > 1, attempts


async def test_one_replica_that_fails_restarts_alone(jobs: Jobs) -> None:
    script = "test $DI_RANK = 1 && exit 1; exec sleep 600"
    await jobs.submit(di_job("one", script, backoff_limit=2, replicas=3))
    await jobs.until("one", "Failed")
    assert (await jobs.job("one"))["nativeStatus"]["restarts"] == 2
    attempts = {replica["rank"]: replica["attempt"] for replica in (await jobs.replicas("one")).values()}
    assert attempts == {0: 1, 1: 3, 2: 1}

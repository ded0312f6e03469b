"""An admission check, whose controller the test plays: a job runs once it is ready, with what the check adds."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from tests.behaviour.queues.kueue import API, GROUP, Queues, condition, existing, until_history
from tests.support.clusters.kueue import NOW
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)

TOLERATION = {"key": "c", "operator": "Exists"}
ADDED = {"labels": {"by": "check"}, "annotations": {"by": "check"}, "tolerations": [TOLERATION]}


@dataclass(slots=True, kw_only=True)
class Check:
    """An admission check of a ClusterQueue."""

    queues: Queues
    name: str

    def is_awaited(self, workload: dict[str, Any]) -> bool:
        """Whether the Workload has quota and waits for the check, and no eviction is in progress."""
        known = {kind: condition(workload, kind).get("status") for kind in ("QuotaReserved", "Evicted")}
        states = [item["state"] for item in workload.get("status", {}).get("admissionChecks", ())]
        return (known["QuotaReserved"], states) == ("True", ["Pending"]) and known["Evicted"] != "True"

    async def decide(self, uid: str, state: str, **more: Any) -> None:
        kube, path = self.queues.jobs.kube, self.queues.path(uid)

        async def write() -> int:
            body = (await kube.get(path)).ok()
            (item,) = body["status"]["admissionChecks"]
            item |= {"state": state, "message": f"it is {state}", "lastTransitionTime": NOW, **more}
            return (await kube.put(f"{path}/status", body)).status

        await until(write, lambda status: status == 200, what=f"the check is {state}")

    async def admit(self, uid: str) -> None:
        await self.queues.workload(uid, self.is_awaited)
        await self.decide(uid, "Ready", podSetUpdates=[{"name": "worker", **ADDED}])


@asynccontextmanager
async def check_of(queues: Queues) -> AsyncIterator[Check]:
    kube, name = queues.jobs.kube, f"check-{secrets.token_hex(4)}"
    spec = {"controllerName": "example.com/test"}
    body = {"apiVersion": f"{GROUP}/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": name}, "spec": spec}
    async with existing(queues.jobs.kube, [body]):
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": NOW}
        (await kube.patch(f"{API}/admissionchecks/{name}/status", {"status": {"conditions": [active]}})).ok()
        strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": name}]}}
        (await kube.patch(f"{API}/clusterqueues/{queues.name}", {"spec": strategy})).ok()
        yield Check(queues=queues, name=name)


@pytest_asyncio.fixture
async def check(queues: Queues) -> AsyncIterator[Check]:
    if (await queues.jobs.kube.get(f"{API}/admissionchecks")).status == 404:
        pytest.skip("the embedded cluster has no admission checks: run `make test-cluster`")
    async with check_of(queues) as made:
        yield made


async def test_the_states_of_a_check(check: Check) -> None:
    queues, jobs = check.queues, check.queues.jobs
    uid = await queues.submit("checked", replicas=2)
    await jobs.pending("checked", "AdmissionChecks")
    assert await jobs.of_job("pods", uid) == []
    await queues.workload(uid, check.is_awaited)
    await check.decide(uid, "Retry")
    # The job loses its quota before it has run, and gets it again.
    await check.admit(uid)
    await jobs.until("checked", "Running")
    for pod in await jobs.of_job("pods", uid):
        assert (pod["metadata"]["labels"]["by"], pod["metadata"]["annotations"]["by"]) == ("check", "check")
        assert TOLERATION in pod["spec"]["tolerations"]
    assert [one["attempt"] for one in (await jobs.replicas("checked")).values()] == [1, 1]

    await check.decide(uid, "Retry")
    row = await until_history(jobs, "checked", "Evicting")
    assert row["message"].startswith("AdmissionCheck: "), row
    await check.admit(uid)
    await jobs.until("checked", "Running")

    await check.decide(uid, "Rejected")
    status = await jobs.until("checked", "Paused")
    assert status["reason"] == "Deactivated"
    await jobs.until_status("checked", lambda status: check.name in status["message"])
    await queues.until_unused()
    await jobs.resume("checked")
    await check.admit(uid)
    await jobs.until("checked", "Running")
    assert [one["attempt"] for one in (await jobs.replicas("checked")).values()] == [3, 3]
    await jobs.delete("checked")
    await queues.until_nothing_left()

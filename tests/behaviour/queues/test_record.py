"""What users see of a queue, from the objects of Kueue in the cluster."""

from typing import Any

import pytest

from tests.behaviour.client import DEADLINE
from tests.behaviour.queues.kueue import Queues
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)


async def read(queues: Queues) -> dict[str, Any]:
    answer = await queues.jobs.http.get(f"/api/v1/namespaces/{queues.jobs.namespace}/queues/team")
    found: dict[str, Any] = answer.json()
    return found


async def test_a_queue_shows_its_quota_and_who_waits(queues: Queues) -> None:
    jobs = queues.jobs
    await queues.submit("first", replicas=2)
    await jobs.until("first", "Running")
    second = await queues.submit("second")
    # Kueue does not consider a job that requests the same as one that waits.
    third = await queues.submit("third", cpu="64")
    await jobs.pending("third", "ExceedsMaxQuota")

    def is_full(found: dict[str, Any]) -> bool:
        return found.get("pending") == 2 and found["resources"][0]["used"] == "2"

    found = await until(lambda: read(queues), is_full, what="the queue is full", within=DEADLINE, every=0.5)
    (quota,) = found["resources"]
    assert quota == {
        "flavor": queues.name,
        "resource": "cpu",
        "nominalQuota": "2",
        "used": "2",
        "usedByQueue": "2",
        "cohortFree": None,
        "cohortMost": None,
    }
    assert (found["clusterQueue"], found["active"], found["message"], found["admitted"]) == (queues.name, True, "", 1)

    def explains(found: dict[str, Any]) -> bool:
        return {job["name"]: job["code"] for job in found["pendingJobs"]} == {
            "second": "WaitingForQuota",
            "third": "ExceedsMaxQuota",
        }

    found = await until(lambda: read(queues), explains, what="both jobs wait", within=DEADLINE, every=0.5)
    # Those that queued in the same second have any order.
    by_name = {job["name"]: job for job in found["pendingJobs"]}
    assert (by_name["second"]["uid"], by_name["third"]["uid"]) == (second, third)
    assert "insufficient unused quota for cpu" in by_name["second"]["message"]
    page = (await jobs.http.get("/api/v1/queues", params={"namespace": jobs.namespace})).json()
    assert page["kueue"] == {"state": "listed", "message": ""}
    assert [queue["name"] for queue in page["items"]] == ["team"]

    await jobs.cancel("first")
    await jobs.until("second", "Running")

    def has_third(found: dict[str, Any]) -> bool:
        return [job["name"] for job in found["pendingJobs"]] == ["third"] and found["admitted"] == 1

    await until(lambda: read(queues), has_third, what="only the third job waits", within=DEADLINE, every=0.5)
    for name in ("first", "second", "third"):
        await jobs.delete(name)
    await queues.until_no_workload()

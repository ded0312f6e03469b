"""Jobs whose Workloads jobgate may not write."""

import pytest

from tests.behaviour.client import DEADLINE, Body, Jobs
from tests.behaviour.queues.kueue import Queues
from tests.support.clusters.cluster import require_faults
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)

DENIED = 'workloads.kueue.x-k8s.io "w" is forbidden: User "gateway" cannot patch resource "workloads/status"'


async def until_message(jobs: Jobs, words: str) -> None:
    """Wait until the list of queues has a message with these words, or none."""

    async def read() -> str:
        found: Body = (await jobs.http.get("/api/v1/queues")).json()
        return str(found["kueue"]["message"])

    await until(read, lambda found: words in found if words else not found, what="the message", within=DEADLINE)


async def test_a_job_and_its_queue_say_that_quota_cannot_be_given_back(queues: Queues) -> None:
    jobs = queues.jobs
    require_faults(jobs.kube.cluster)
    await queues.submit("low", replicas=2)
    await jobs.until("low", "Running")
    await jobs.fault(verb="patch", resource="workloads", subresource="status", status=403, message=DENIED)
    try:
        await queues.submit("high", replicas=2, high=True)
        reason = await jobs.pending("low", "ClusterDenied")
        assert DENIED in reason["message"]
        assert (await jobs.status("low"))["phase"] == "Queued"
        # Without the names: a reader of another namespace gets it too.
        await until_message(jobs, "jobgate cannot write Workloads: 403 Forbidden")
    finally:
        await jobs.no_faults()
    await jobs.until("high", "Running")
    await jobs.pending("low", "WaitingForQuota")
    await until_message(jobs, "")
    for name in ("low", "high"):
        await jobs.delete(name)
    await queues.until_nothing_left()

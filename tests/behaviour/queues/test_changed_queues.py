"""Queues that are deleted, made again, and crowded while jobs run and wait in them."""

from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.client import DEADLINE, Body
from tests.behaviour.manifests import job, until_marked
from tests.behaviour.queues.kueue import (
    API,
    GROUP,
    NODE_LABEL,
    Queues,
    body_of,
    existing,
    queued,
    quota_objects,
    requesting,
)
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)

MANY = 200
AT_ONCE = 100
SHOWN = 100


async def test_a_cluster_queue_that_is_deleted_stops_no_job_and_starts_none(queues: Queues, tmp_path: Path) -> None:
    jobs, mark, path = queues.jobs, tmp_path / "go", f"{API}/clusterqueues/{queues.name}"
    running = await queues.submit("running", until_marked(mark, "exit 0"), replicas=2)
    await jobs.until("running", "Running")
    waiting = await queues.submit("waiting", "exit 0")
    await jobs.pending("waiting", "WaitingForQuota")
    before = {pod["metadata"]["uid"] for pod in await jobs.of_job("pods", running)}
    spec = (await jobs.kube.get(path)).ok()["spec"]
    (await jobs.kube.delete(path)).ok()
    # Kueue holds a ClusterQueue while it is in use, and the embedded cluster does not.
    other = await queues.submit("other", "exit 0")
    await jobs.until_status("other", _waits_for_the_queue)
    assert {pod["metadata"]["uid"] for pod in await jobs.of_job("pods", running)} == before
    assert (await jobs.status("running"))["phase"] == "Running"
    mark.touch()
    await jobs.until("running", "Succeeded")
    await jobs.kube.gone(path, within=DEADLINE)
    for uid in (waiting, other):
        assert await jobs.of_job("pods", uid) == []
    # Kueue 0.15 may write nothing into a Workload that already waits.
    await jobs.until_status("waiting", lambda status: _waits_for_the_queue(status, "WaitingForQuota"))

    (await jobs.kube.post(f"{API}/clusterqueues", body_of("ClusterQueue", queues.name, spec=spec))).ok()
    for name in ("waiting", "other"):
        await jobs.until(name, "Succeeded")
    for name in ("running", "waiting", "other"):
        await jobs.delete(name)
    await queues.until_nothing_left()


def _waits_for_the_queue(status: Body, *earlier: str) -> bool:
    codes = {reason["code"] for reason in status["pendingReasons"]}
    return status["phase"] == "Queued" and bool(codes) and codes <= {"QueueStopped", "QueueMissing", *earlier}


async def test_a_flavor_that_changes_concerns_later_admissions(queues: Queues, tmp_path: Path) -> None:
    jobs, mark, label = queues.jobs, tmp_path / "fail", {"example.com/zone": "none"}
    script = f"test -e {mark} && exec sleep 600; {until_marked(mark, 'exit 1')}"
    uid = await queues.submit("restarts", script, policy="Always")
    await jobs.until("restarts", "Running")
    (await jobs.kube.patch(f"{API}/resourceflavors/{queues.name}", {"spec": {"nodeLabels": label}})).ok()
    mark.touch()
    await jobs.until_replica("restarts", lambda replica: (replica["attempt"], replica["phase"]) == (2, "Running"))
    assert (await jobs.pod("restarts-worker-0"))["spec"]["nodeSelector"] == NODE_LABEL
    await jobs.pause("restarts")
    await jobs.until("restarts", "Paused")
    await jobs.resume("restarts")
    await jobs.pending("restarts", "Unschedulable")
    assert (await jobs.pod("restarts-worker-0"))["spec"]["nodeSelector"] == NODE_LABEL | label
    await jobs.delete("restarts")
    await jobs.until_objects("pods", uid, lambda pods: not pods)
    await queues.until_nothing_left()


async def test_a_local_queue_may_get_another_cluster_queue(queues: Queues, tmp_path: Path) -> None:
    jobs, mark, second = queues.jobs, tmp_path / "go", f"{queues.name}-second"
    made = quota_objects(second, 2, flavor={"nodeLabels": NODE_LABEL}, priority_class=f"{second}-high")
    async with existing(jobs.kube, made):
        running = await queues.submit("running", until_marked(mark, "exit 0"), replicas=2)
        await jobs.until("running", "Running")
        waiting = await queues.submit("waiting", until_marked(mark, "exit 0"))
        await jobs.pending("waiting", "WaitingForQuota")
        before = {pod["metadata"]["uid"] for pod in await jobs.of_job("pods", running)}
        (await jobs.kube.delete(f"{API}/namespaces/{jobs.namespace}/localqueues/team")).ok()
        await jobs.pending("waiting", "QueueMissing")
        await queues.add_local("team", of=second)
        await jobs.until("waiting", "Running")
        assert (await queues.workload(waiting))["status"]["admission"]["clusterQueue"] == second
        assert (await queues.workload(running))["status"]["admission"]["clusterQueue"] == queues.name
        assert {pod["metadata"]["uid"] for pod in await jobs.of_job("pods", running)} == before
        mark.touch()
        for name in ("running", "waiting"):
            await jobs.until(name, "Succeeded")
            await jobs.delete(name)
        await queues.until_nothing_left()


async def test_a_cluster_queue_admits_jobs_of_the_namespaces_that_it_selects(queues: Queues) -> None:
    jobs, path = queues.jobs, f"{API}/clusterqueues/{queues.name}"
    manifest = queued(job("elsewhere", requesting("exit 0")), "team")

    async def dry_run() -> Body:
        path = f"/api/v1/namespaces/{jobs.namespace}/jobs"
        answer = await jobs.http.post(path, params={"dryRun": "All"}, json=manifest)
        found: Body = answer.json()["queue"]
        return found

    async def until_outcome(outcome: str) -> Body:
        return await until(dry_run, lambda found: found["outcome"] == outcome, what=outcome, within=DEADLINE)

    await until_outcome("HasRoom")
    (await jobs.kube.patch(path, {"spec": {"namespaceSelector": {"matchLabels": {"queue": queues.name}}}})).ok()
    found = await until_outcome("WouldWait")
    assert (found["code"], "namespaceSelector" in found["detail"]) == ("NoMatchingFlavor", True), found
    await jobs.submit(manifest)
    reason = await jobs.pending("elsewhere", "NoMatchingFlavor")
    assert "namespace doesn't match ClusterQueue selector" in reason["message"]
    label = {"metadata": {"labels": {"queue": queues.name}}}
    (await jobs.kube.patch(f"/api/v1/namespaces/{jobs.namespace}", label)).ok()
    await jobs.until("elsewhere", "Succeeded")
    await until_outcome("HasRoom")
    await jobs.delete("elsewhere")
    await queues.until_nothing_left()


async def test_an_edit_moves_a_waiting_job_to_another_queue(queues: Queues) -> None:
    jobs, second = queues.jobs, f"{queues.name}-second"
    made = quota_objects(second, 2, flavor={"nodeLabels": NODE_LABEL}, priority_class=f"{second}-high")
    async with existing(jobs.kube, made):
        await queues.add_local("other", of=second)
        running = await queues.submit("running", replicas=2)
        await jobs.until("running", "Running")
        waiting = await queues.submit("waiting")
        await jobs.pending("waiting", "WaitingForQuota")
        for name in ("running", "waiting"):
            await jobs.ask("PATCH", name, json={"metadata": {"labels": {f"{GROUP}/queue-name": "other"}}})
        status = await jobs.until("waiting", "Running")
        assert status["queue"]["name"] == "other"
        assert (await queues.workload(waiting))["status"]["admission"]["clusterQueue"] == second
        assert (await queues.workload(running))["spec"]["queueName"] == "team"
        for name in ("running", "waiting"):
            await jobs.delete(name)
        await queues.until_nothing_left()


async def test_hundreds_of_jobs_wait_in_one_queue_while_clients_poll(queues: Queues) -> None:
    jobs = queues.jobs
    collection, path = f"/api/v1/namespaces/{jobs.namespace}/jobs", f"/api/v1/namespaces/{jobs.namespace}/queues/team"
    await queues.stop("Hold")
    for first in range(0, MANY, AT_ONCE):
        items = [
            queued(job(f"job-{number}", requesting("exit 0", cpu="10m")), "team")
            for number in range(first, first + AT_ONCE)
        ]
        answer = await jobs.http.post(collection, json={"apiVersion": "v1", "kind": "List", "items": items})
        assert answer.status_code == 201, answer.text

    async def read() -> Any:
        answer = await jobs.http.get(path)
        return answer.json() if answer.status_code == 200 else {}

    def is_complete(queue: Body) -> bool:
        jobs_shown = queue.get("pendingJobs", ())
        count = len(jobs_shown) + queue.get("pendingJobsOmitted", 0)
        return bool(count == MANY and {one["code"] for one in jobs_shown} == {"QueueStopped"})

    queue = await until(read, is_complete, what="all jobs wait", within=400)
    assert (len(queue["pendingJobs"]), queue["pendingJobsOmitted"]) == (SHOWN, MANY - SHOWN)
    # What has not changed is not sent again.
    answer = await jobs.http.get(path)
    again = await jobs.http.get(path, headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code in (200, 304)
    listed = await jobs.http.get(collection, params={"queue": "team", "view": "summary", "pageSize": "500"})
    assert len(listed.json()["items"]) == MANY
    for first in range(0, MANY, AT_ONCE):
        for number in range(first, first + AT_ONCE):
            await jobs.delete(f"job-{number}")
    await until(read, lambda queue: queue["pendingJobs"] == [], what="none waits", within=400)
    await queues.until_no_workload()

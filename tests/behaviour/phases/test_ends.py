"""How a job ends: rules, implied rules, deadlines, cancel, clean-up, TTL; and debug mode, which no rule ends."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.client import Jobs
from tests.behaviour.conftest import OtherGateway
from tests.behaviour.manifests import container, job, task, until_marked
from tests.support.gateways.process import GatewayProcess

PORT = {"ports": [{"port": 2222}]}


async def test_the_rule_that_fired_is_named_in_both_statuses(jobs: Jobs) -> None:
    tasks = [task("exit 0", "chief"), task(replicas=2)]
    rules: dict[str, Any] = {"successRules": [{"worker": [0, 1]}, {"chief": [0]}], "failureRules": [{"worker": [1]}]}
    await jobs.submit(job("ruled", *tasks, **rules))
    status = await jobs.until("ruled", "Succeeded")
    assert status["reason"] == "RuleFulfilled"
    assert status["message"].startswith("successRules[1]")
    native = (await jobs.job("ruled"))["nativeStatus"]
    conditions = {item["type"]: item for item in native["conditions"]}
    assert native["phase"] == "Succeeded"
    assert (conditions["Completed"]["status"], conditions["Failed"]["status"]) == ("True", "False")
    assert "successRules[1]" in conditions["Completed"]["message"]


async def test_a_failure_rule_ends_the_job_while_others_run(jobs: Jobs) -> None:
    tasks = [task("exit 3", "chief"), task()]
    await jobs.submit(job("failing", *tasks, successRules=[{"worker": [0]}], failureRules=[{"chief": [0]}]))
    status = await jobs.until("failing", "Failed")
    node = (await jobs.replica("failing", "chief-0"))["node"]
    cause = f"chief[0] failed in attempt 1 on node {node} (exit code 3, Error)"
    assert status["reason"] == "RuleFulfilled"
    ended = f"failureRules[0] is fulfilled: all of chief[0] failed: {cause}"
    assert status["message"] == f"{ended}; 1 replica of this job still runs"
    native = {item["type"]: item for item in (await jobs.job("failing"))["nativeStatus"]["conditions"]}
    assert (native["Failed"]["status"], native["Failed"]["reason"]) == ("True", "Failed")
    assert (native["Completed"]["status"], native["Completed"]["reason"]) == ("True", "Failed")


async def test_success_is_looked_at_before_failure(jobs: Jobs, gateway: GatewayProcess, tmp_path: Path) -> None:
    """Both rules come to hold while no gateway runs, so the first list of the next one has both ends."""
    mark = tmp_path / "mark"
    tasks = [task(until_marked(mark, "exit 1"), "bad"), task(until_marked(mark, "exit 0"), "good")]
    await jobs.submit(job("both", *tasks, successRules=[{"good": [0]}], failureRules=[{"bad": [0]}]))
    await jobs.until("both", "Running")
    await gateway.kill()
    try:
        mark.touch()
        for name, phase in (("both-bad-0", "Failed"), ("both-good-0", "Succeeded")):
            await jobs.kube.eventually(jobs.objects("pods", name), has_phase(phase))
    finally:
        await gateway.start()
    assert (await jobs.until("both", "Succeeded", "Failed"))["phase"] == "Succeeded"


def has_phase(phase: str) -> Callable[[Any], bool]:
    return lambda pod: pod["status"]["phase"] == phase


@pytest.mark.parametrize(
    ("script", "phase", "reason"),
    [
        ("exit 0", "Succeeded", "RuleFulfilled"),
        ("test $(rank) = 0", "Failed", "SuccessImpossible"),
    ],
)
async def test_without_rules_all_replicas_must_succeed(jobs: Jobs, script: str, phase: str, reason: str) -> None:
    await jobs.submit(job("implied", task(script, replicas=2)))
    assert (await jobs.until("implied", "Succeeded", "Failed"))["phase"] == phase
    assert (await jobs.status("implied"))["reason"] == reason


async def test_a_job_that_can_no_longer_succeed_fails_although_no_failure_rule_holds(jobs: Jobs) -> None:
    """Its workers would hold their resources until somebody cancels it."""
    tasks = [task("exit 1", "master"), task("exec sleep 600")]
    await jobs.submit(job("stuck", *tasks, successRules=[{"master": [0]}], failureRules=[{"worker": [0]}]))
    status = await jobs.until("stuck", "Failed")
    assert status["reason"] == "SuccessImpossible"
    assert "master[0]" in status["message"]


async def test_debug_pods_do_nothing_and_no_rule_ends_them(jobs: Jobs) -> None:
    first = container("exit 1", "prepare")
    chosen = [{"type": "worker", "skipInitContainer": True, "command": ["sh", "-c", "echo debugging; exit 9"]}]
    mode = {"debug": {"enabled": True, "replicaSpecs": chosen}}
    uid = (await jobs.submit(job("debug", task("exit 0", initContainers=[first]), runMode=mode)))["uid"]
    replica = await jobs.until_replica("debug", lambda replica: replica["phase"] == "Failed")
    assert replica["exitCode"] == 9
    await jobs.until_log("debug", "debugging")
    await jobs.until("debug", "Running")
    await jobs.cancel("debug")
    await jobs.until("debug", "Cancelled")
    await jobs.until_released(uid)


async def test_a_cancelled_job_leaves_nothing_running_and_keeps_what_ended(jobs: Jobs) -> None:
    tasks = [task("echo early; exit 0", "early"), task(replicas=2)]
    uid = (await jobs.submit(job("stop", *tasks)))["uid"]
    await jobs.until_replica("stop", lambda replica: replica["phase"] == "Succeeded", "early-0")
    await jobs.until("stop", "Running")
    await jobs.cancel("stop")
    status = await jobs.until("stop", "Cancelled")
    assert status["aggregate"] == aggregate(succeeded=1, deleted=2)
    await jobs.until_objects("pods", uid, lambda pods: [pod["metadata"]["name"] for pod in pods] == ["stop-early-0"])
    reasons = await jobs.reasons("stop")
    assert "CancelRequested" in reasons
    assert "Cancelled" in reasons
    replica = await jobs.replica("stop")
    assert (replica["reason"], replica["attempts"][0]["outcome"]) == ("Cancelled", "Stopped")


async def test_a_job_that_never_started_can_be_cancelled(jobs: Jobs) -> None:
    await jobs.submit(job("never", task(nodeSelector={"no": "such-node"})))
    await jobs.pending("never", "Unschedulable")
    await jobs.cancel("never")
    await jobs.until("never", "Cancelled")
    await jobs.until_pod_gone("never-worker-0")


def aggregate(**counts: int) -> dict[str, int]:
    buckets = ("creating", "pending", "running", "succeeded", "failed", "unknown", "deleted")
    return {bucket: counts.get(bucket, 0) for bucket in buckets}


@pytest.mark.parametrize(
    ("policy", "left", "counts"),
    [
        ("None", ["done", "failed", "runs"], {"succeeded": 1, "failed": 1, "running": 1}),
        ("Unfinished", ["done", "failed"], {"succeeded": 1, "failed": 1, "deleted": 1}),
        ("All", [], {"succeeded": 1, "failed": 1, "deleted": 1}),
    ],
)
async def test_what_clean_up_leaves(
    jobs: Jobs, policy: str, left: list[str], counts: dict[str, int], tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    last = task(until_marked(mark, "exit 0"), "last")
    tasks = [task("exit 0", "done"), task("exit 1", "failed"), task(kind="runs"), last]
    rules: dict[str, Any] = {"successRules": [{"done": [0], "last": [0]}], "cleanUpPolicy": policy}
    uid = (await jobs.submit(job("clean", *tasks, **rules)))["uid"]
    ready = aggregate(succeeded=1, failed=1, running=2)
    await jobs.until_status("clean", lambda status: status["aggregate"] == ready)
    mark.touch()
    await jobs.until("clean", "Succeeded")
    left = sorted(f"clean-{kind}-0" for kind in [*left, *(["last"] if left else [])])

    def are_left(pods: Any) -> bool:
        return sorted(pod["metadata"]["name"] for pod in pods) == left

    await jobs.until_objects("pods", uid, are_left)
    counts = counts | {"succeeded": 2}
    await jobs.until_status("clean", lambda status: status["aggregate"] == aggregate(**counts))
    assert (await jobs.status("clean"))["phase"] == "Succeeded"
    assert len(await jobs.names("configmaps", uid)) == 1


async def test_what_runs_after_the_end_is_reported_and_can_be_cancelled_and_nothing_starts_any_more(jobs: Jobs) -> None:
    secret = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "late", "key": "a"}}}
    waits = task("exit 0", "waits", containers=[container("exit 0", env=[secret])])
    tasks = [task("sleep 2; exit 1", "worker"), task(kind="chief"), waits]
    rules: dict[str, Any] = {"successRules": [], "failureRules": [{"worker": [0]}], "cleanUpPolicy": "None"}
    uid = (await jobs.submit(job("left", *tasks, **rules)))["uid"]
    await jobs.until("left", "Failed")
    status = await jobs.until_status("left", lambda status: status["aggregate"]["deleted"] == 1)
    assert status["stillRunning"] == 1
    assert status["message"].endswith("; 1 replica of this job still runs")
    await jobs.until_objects("pods", uid, lambda pods: len(pods) == 2)
    listed = (await jobs.http.get("/api/v1/jobs", params={"stillRunning": True})).json()["items"]
    assert uid in [one["uid"] for one in listed]
    await jobs.ask("POST", "left", "cancel")
    status = await jobs.until_status("left", lambda status: not status["stillRunning"])
    assert (status["phase"], "still runs" in status["message"]) == ("Failed", False)
    await jobs.until_objects("pods", uid, lambda pods: len(pods) == 1)


async def test_a_job_past_its_active_deadline_times_out_with_nothing_running(jobs: Jobs) -> None:
    manifest = job("slow", task(replicas=2), annotations={"active-deadline-seconds": "1"})
    uid = (await jobs.submit(manifest))["uid"]
    status = await jobs.until("slow", "TimedOut")
    assert status["reason"] == "DeadlineExceeded"
    assert "1 s" in status["message"]
    await jobs.until_objects("pods", uid, lambda pods: not pods)
    conditions = await jobs.conditions("slow")
    assert (conditions["Failed"]["status"], conditions["Completed"]["status"]) == ("True", "False")


async def test_a_deadline_that_an_edit_sets_holds_for_a_job_that_runs(jobs: Jobs) -> None:
    await jobs.submit(job("edited"))
    await jobs.until("edited", "Running")
    deadline = {"jobgate.dev/active-deadline-seconds": "1"}
    edited = await jobs.ask("PATCH", "edited", json={"metadata": {"annotations": deadline}})
    assert edited["generation"] == 1
    assert (await jobs.until("edited", "TimedOut"))["reason"] == "DeadlineExceeded"


async def test_a_job_past_its_pending_deadline_fails_and_says_what_it_waited_for(jobs: Jobs) -> None:
    waiting = task(nodeSelector={"no": "such-node"})
    uid = (await jobs.submit(job("late", waiting, annotations={"pending-deadline-seconds": "12"})))["uid"]
    status = await jobs.until("late", "Failed")
    assert status["reason"] == "PendingDeadlineExceeded"
    assert "Unschedulable: 0/" in status["message"]
    await jobs.until_objects("pods", uid, lambda pods: not pods)


async def test_a_job_whose_quota_is_for_one_of_two_says_at_its_deadline_who_waits_and_why(jobs: Jobs) -> None:
    path = jobs.objects("resourcequotas")
    (await jobs.kube.post(path, {"metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}}})).ok()
    await jobs.kube.eventually(f"{path}/one", lambda found: found["status"].get("hard"))
    uid = (await jobs.submit(job("half", task(replicas=2), annotations={"pending-deadline-seconds": "12"})))["uid"]
    status = await jobs.until("half", "Failed")
    assert status["reason"] == "PendingDeadlineExceeded"
    assert re.search(r" worker\[[01]\]: QuotaExceeded: .*exceeded quota: one", status["message"]), status["message"]
    await jobs.until_objects("pods", uid, lambda pods: not pods)


async def test_after_its_time_to_live_every_object_goes_and_the_story_stays(jobs: Jobs) -> None:
    manifest = job("gone", task("echo words"), annotations={"ttl-seconds-after-finished": "1"}, service=PORT)
    uid = (await jobs.submit(manifest))["uid"]
    await jobs.until("gone", "Succeeded")
    for kind in ("pods", "services", "configmaps"):
        await jobs.until_objects(kind, uid, lambda found: not found)
    assert (await jobs.status("gone"))["phase"] == "Succeeded"
    assert (await jobs.log("gone")).text == "words\n"
    assert "Submitted" in await jobs.reasons("gone")


async def test_the_installation_removes_the_objects_of_jobs_that_do_not_say_when(
    other_gateway: OtherGateway,
) -> None:
    async with other_gateway(JOBGATE_TTL_AFTER_FINISHED="1") as here:
        longer = {"ttl-seconds-after-finished": "3600"}
        uid = (await here.submit(job("gone", task("echo words"), service=PORT)))["uid"]
        kept = (await here.submit(job("kept", task("echo words"), annotations=longer)))["uid"]
        for name in ("gone", "kept"):
            await here.until(name, "Succeeded")
        for kind in ("pods", "services", "configmaps"):
            await here.until_objects(kind, uid, lambda found: not found)
        assert (await here.log("gone")).text == "words\n"
        await here.until_objects("pods", kept, bool)


async def test_deleting_takes_every_object_and_keeps_the_history_by_uid(jobs: Jobs) -> None:
    script = "trap 'echo goodbye; exit 0' TERM; echo begun; while true; do sleep 0.1; done"
    manifest = job("away", task(script, replicas=2, terminationGracePeriodSeconds=20), service=PORT)
    uid = (await jobs.submit(manifest))["uid"]
    await jobs.until("away", "Running")
    await jobs.until_log("away", "begun")
    await jobs.delete("away")
    for kind in ("pods", "services", "configmaps"):
        await jobs.until_objects(kind, uid, lambda found: not found)
    kept = await jobs.read_uid(uid)
    assert kept["status"]["phase"] == "Cancelled"
    assert kept["deletedAt"]
    reasons = [row["reason"] for row in (await jobs.read_uid(uid, "history"))["items"]]
    assert "DeleteRequested" in reasons
    [first, second] = (await jobs.read_uid(uid, "replicas"))["items"]
    assert {first["reason"], second["reason"]} == {"Removed"}
    assert first["attempts"][0]["evidence"] == "Captured"
    stored = await jobs.http.get(f"/api/v1/jobs/{uid}/logs")
    assert stored.text.endswith("goodbye\n")


async def test_a_finished_job_can_be_deleted_too(jobs: Jobs) -> None:
    uid = (await jobs.submit(job("over", task("exit 3"))))["uid"]
    await jobs.until("over", "Failed")
    await jobs.delete("over")
    for kind in ("pods", "configmaps"):
        await jobs.until_objects(kind, uid, lambda found: not found)
    assert (await jobs.read_uid(uid))["status"]["phase"] == "Failed"


async def test_a_terminal_phase_stays_whatever_its_pods_do(jobs: Jobs) -> None:
    tasks = [task("exit 0", "chief"), task()]
    await jobs.submit(job("final", *tasks, successRules=[{"chief": [0]}]))
    await jobs.until("final", "Succeeded")
    (await jobs.kube.delete(jobs.objects("pods", "final-worker-0"))).ok()
    await jobs.until_pod_gone("final-worker-0")
    replica = await jobs.until_replica("final", lambda replica: replica["phase"] == "Deleted")
    assert replica["attempt"] == 1
    assert (await jobs.status("final"))["phase"] == "Succeeded"

"""Pause and resume: pods end gracefully, no restart limit counts them, ranks that have succeeded do not change."""

from pathlib import Path

import pytest

from tests.behaviour.client import Jobs
from tests.behaviour.manifests import container, job, task, until_marked

GRACEFUL = "trap 'echo saved; exit 0' TERM; echo begun; while true; do sleep 0.1; done"


async def test_pause_is_graceful_and_keeps_nothing_running(jobs: Jobs) -> None:
    manifest = job("rest", task(GRACEFUL, replicas=2, terminationGracePeriodSeconds=20))
    uid = (await jobs.submit(manifest))["uid"]
    await jobs.until("rest", "Running")
    await jobs.until_log("rest", "begun")
    await jobs.until_log("rest", "begun", rank="1")
    await jobs.pause("rest")
    status = await jobs.until("rest", "Paused")
    assert status["reason"] == "Paused"
    assert status["aggregate"]["deleted"] == 2
    assert await jobs.names("pods", uid) == []
    assert len(await jobs.names("configmaps", uid)) == 1
    stopped = await jobs.replica("rest")
    assert (stopped["reason"], stopped["attempts"][0]["outcome"]) == ("Paused", "Stopped")
    lines = (await jobs.log("rest")).text.splitlines()
    assert (lines[0], lines[-1]) == ("begun", "saved")
    conditions = await jobs.conditions("rest")
    assert (conditions["Paused"]["status"], conditions["Running"]["status"]) == ("True", "False")
    assert (await jobs.job("rest"))["nativeStatus"]["phase"] == "Paused"
    reasons = await jobs.reasons("rest")
    assert {"PauseRequested", "Pausing", "Paused"} <= set(reasons)


async def test_an_exit_during_pause_fires_no_rule_and_costs_no_restart(jobs: Jobs) -> None:
    script = "trap 'exit 1' TERM; while true; do sleep 0.1; done"
    await jobs.submit(job("grumpy", task(script, terminationGracePeriodSeconds=20), failureRules=[{"worker": [0]}]))
    await jobs.until("grumpy", "Running")
    await jobs.pause("grumpy")
    await jobs.until("grumpy", "Paused")
    await jobs.resume("grumpy")
    await jobs.until("grumpy", "Running")
    replica = await jobs.replica("grumpy")
    assert (replica["attempt"], replica["restartCount"], replica["disruptions"]) == (2, 0, 0)


async def test_resume_takes_its_command_and_skips_init_containers(jobs: Jobs) -> None:
    first = container("echo prepared", "prepare")
    resumed = {"type": "worker", "skipInitContainer": True, "command": ["sh", "-c", "echo from the checkpoint"]}
    mode = {"pause": {"enabled": False, "resumeSpecs": [resumed]}}
    await jobs.submit(job("resume", task(initContainers=[first]), runMode=mode))
    await jobs.until("resume", "Running")
    assert {item["name"] for item in (await jobs.replica("resume"))["containers"]} == {"prepare", "main"}
    await jobs.pause("resume")
    await jobs.until("resume", "Paused")
    await jobs.resume("resume")
    await jobs.until("resume", "Succeeded")
    replica = await jobs.replica("resume")
    assert replica["attempt"] == 2
    assert {item["name"] for item in replica["containers"]} == {"main"}
    assert (await jobs.log("resume")).text == "from the checkpoint\n"
    assert "Resuming" in await jobs.reasons("resume")


async def test_ranks_that_have_succeeded_do_not_run_again(jobs: Jobs, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    script = f"test $(rank) = 0 && echo run >> {runs} && exit 0; exec sleep 600"
    await jobs.submit(job("half", task(script, replicas=2)))
    await jobs.until_replica("half", lambda replica: replica["phase"] == "Succeeded")
    await jobs.until("half", "Running")
    await jobs.pause("half")
    await jobs.until("half", "Paused")
    await jobs.resume("half")
    await jobs.until("half", "Running")
    await jobs.until_replica("half", lambda replica: replica["phase"] == "Running", "worker-1")
    replicas = await jobs.replicas("half")
    assert (replicas["worker-0"]["attempt"], replicas["worker-0"]["phase"]) == (1, "Succeeded")
    assert (replicas["worker-1"]["attempt"], replicas["worker-1"]["phase"]) == (2, "Running")
    assert runs.read_text() == "run\n"


async def test_a_job_created_paused_has_no_pods_until_it_is_resumed(jobs: Jobs) -> None:
    uid = (await jobs.submit(job("asleep", task("exit 0"), runMode={"pause": {"enabled": True}})))["uid"]
    status = await jobs.until("asleep", "Paused")
    assert status["aggregate"]["deleted"] == 1
    assert await jobs.names("pods", uid) == []
    await jobs.resume("asleep")
    await jobs.until("asleep", "Succeeded")
    assert (await jobs.replica("asleep"))["attempt"] == 1


@pytest.mark.parametrize("end", ["cancel", "delete"])
async def test_a_paused_job_can_be_ended(jobs: Jobs, end: str) -> None:
    uid = (await jobs.submit(job("ended")))["uid"]
    await jobs.until("ended", "Running")
    await jobs.pause("ended")
    await jobs.until("ended", "Paused")
    await (jobs.cancel("ended") if end == "cancel" else jobs.delete("ended"))
    if end == "delete":
        await jobs.until_objects("configmaps", uid, lambda found: not found)
    else:
        await jobs.until("ended", "Cancelled")
    assert (await jobs.read_uid(uid))["status"]["phase"] == "Cancelled"


async def test_pause_while_a_job_waits_and_resume_again(jobs: Jobs) -> None:
    await jobs.submit(job("idle", task(nodeSelector={"no": "such-node"})))
    await jobs.pending("idle", "Unschedulable")
    await jobs.pause("idle")
    status = await jobs.until("idle", "Paused")
    assert status["pendingReasons"] == []
    await jobs.resume("idle")
    await jobs.pending("idle", "Unschedulable")
    assert (await jobs.status("idle"))["phase"] == "Resuming"
    assert (await jobs.replica("idle"))["attempt"] == 2


async def test_resumed_before_its_pods_were_gone_it_comes_back_with_the_next_attempt(
    jobs: Jobs, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    script = f"trap '{until_marked(mark, 'exit 0')}' TERM; echo begun; while true; do sleep 0.1; done"
    await jobs.submit(job("hasty", task(script, terminationGracePeriodSeconds=60)))
    await jobs.until("hasty", "Running")
    await jobs.until_log("hasty", "begun")
    await jobs.pause("hasty")
    await jobs.until_status("hasty", lambda status: status["reason"] == "Pausing")
    await jobs.resume("hasty")
    mark.touch()
    await jobs.until_replica("hasty", lambda replica: replica["attempt"] == 2 and replica["phase"] == "Running")
    await jobs.until("hasty", "Running")
    assert (await jobs.replica("hasty"))["restartCount"] == 0

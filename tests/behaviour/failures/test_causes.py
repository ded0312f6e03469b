"""A failed job says why in its status, in its history and in its native status."""

from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.client import Jobs
from tests.behaviour.manifests import container, job, task

LEFT = "echo 'ValueError: bad rate' > /dev/termination-log; "
ALWAYS: dict[str, Any] = {"restartPolicy": "Always"}
RESTARTED_IN_PLACE: dict[str, Any] = {
    "restartPolicy": "Never",
    "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
    "terminationMessagePolicy": "FallbackToLogsOnError",
}
# The other containers start once a sidecar has started, so it must not end at once.
SIDECAR = f"sleep 0.5; {LEFT} exit 1"
TRACEBACK = "echo 'Traceback (most recent call last):' >&2; echo 'ValueError: bad rate' >&2; exit 1"


async def test_a_misspelt_program_is_named(jobs: Jobs) -> None:
    misspelt = {"name": "main", "image": "busybox", "command": ["pyhton", "train.py"]}
    await jobs.submit(job("misspelt", task(containers=[misspelt])))
    status = await jobs.until("misspelt", "Failed")
    replica = await jobs.replica("misspelt")
    assert status["message"].startswith(
        "no success rule can be fulfilled any more: "
        f"worker[0] failed in attempt 1 on node {replica['node']} (exit code 128, StartError): "
    )
    assert '"pyhton": executable file not found' in status["message"]
    first = status["firstFailure"]
    assert (first["replica"], first["attempt"], first["node"]) == ("worker[0]", 1, replica["node"])
    assert (first["exitCode"], first["reason"], first["lastLines"]) == (128, "StartError", None)
    assert (replica["startedAt"], replica["containers"][0]["startedAt"]) == (None, None)
    conditions = {item["type"]: item for item in (await jobs.job("misspelt"))["nativeStatus"]["conditions"]}
    assert '"pyhton": executable file not found' in conditions["Failed"]["message"]
    rows = [row for row in await jobs.history("misspelt") if row["reason"] == "ReplicaFailed"]
    assert [(row["task"], row["rank"], row["attempt"]) for row in rows] == [("worker", 0, 1)]
    assert '"pyhton": executable file not found' in rows[0]["message"]


async def test_the_last_line_of_the_log_is_the_cause(jobs: Jobs) -> None:
    tasks = [task(containers=[container(TRACEBACK)], policy="OnFailure", limit=1)]
    await jobs.submit(job("traceback", *tasks, cleanUpPolicy="All"))
    status = await jobs.until("traceback", "Failed")
    assert "worker[0] failed in attempt 2 on node " in status["message"]
    assert status["message"].endswith("(exit code 1, Error): ValueError: bad rate")
    await jobs.until_pod_gone("traceback-worker-0")
    first = (await jobs.status("traceback"))["firstFailure"]
    assert (first["attempt"], first["exitCode"]) == (1, 1)
    assert first["lastLines"] == ["Traceback (most recent call last):", "ValueError: bad rate"]
    rows = [row for row in await jobs.history("traceback") if row["task"] == "worker"]
    assert [(row["reason"], row["attempt"]) for row in rows] == [("ReplicaRestarting", 1), ("ReplicaFailed", 2)]
    assert all("(exit code 1, Error): ValueError: bad rate" in row["message"] for row in rows)


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("rules", {"containers": [container(TRACEBACK, **RESTARTED_IN_PLACE)]}),
        ("sidecar", {"containers": [container()], "initContainers": [container(SIDECAR, "proxy", **ALWAYS)]}),
    ],
)
async def test_a_crash_loop_in_place_is_in_the_status_of_a_running_job(
    jobs: Jobs, name: str, spec: dict[str, Any]
) -> None:
    await jobs.submit(job(name, task(**spec)))
    status = await jobs.until_status(name, lambda status: status["restartsInPlace"] > 2 and status["pendingReasons"])
    (reason,) = status["pendingReasons"]
    assert (status["phase"], reason["code"], reason["started"]) == ("Running", "CrashLoop", True)
    assert reason["message"].endswith("is restarted again and again: exit code 1, Error: ValueError: bad rate")
    assert status["message"] == f"1 of 1 replicas are running; 1 with a fault: CrashLoop: {reason['message']}"
    replica = await jobs.replica(name)
    assert (replica["attempt"], replica["restartCount"]) == (1, 0)
    assert replica["restartsInPlace"] >= status["restartsInPlace"]
    rows = [row for row in await jobs.history(name) if row["reason"] == "ContainerRestarted"]
    assert [(row["task"], row["rank"], row["attempt"]) for row in rows] == [("worker", 0, 1)] * len(rows)
    assert rows
    await jobs.cancel(name)


async def test_warnings_of_jobgate_and_of_the_cluster_are_kept_with_the_job(jobs: Jobs) -> None:
    limits = {"limits": {"memory": "400000400m"}}
    stated = task(
        replicas=2, policy="OnFailure", containers=[container("exit 0", resources=limits)], restartPolicy="Always"
    )
    submitted = await jobs.submit(job("warned", stated))
    own = [(one["source"], one["pointer"]) for one in submitted["status"]["warnings"]]
    assert own == [
        ("jobgate", "/spec/replicaSpecs/0/template/spec/restartPolicy"),
        ("jobgate", "/spec/replicaSpecs/0/restartPolicy"),
    ]
    status = await jobs.until("warned", "Succeeded")
    assert status["warnings"][:2] == submitted["status"]["warnings"]
    found = [(one["source"], one["task"]) for one in status["warnings"][2:]]
    # The API server repeats its warnings for each pod, and for the requests that follow from the limits.
    assert found in ([("cluster", "worker")], [("cluster", "worker")] * 2)
    assert "spec.containers[0].resources.limits[memory]: fractional byte value" in str(status["warnings"])


async def test_a_job_that_waits_says_why_in_its_message(jobs: Jobs) -> None:
    resources = {"requests": {"cpu": "4000"}}
    await jobs.submit(job("greedy", task(containers=[container(resources=resources)])))
    status = await jobs.until_status("greedy", lambda status: status["message"].startswith("Unschedulable: 0/"))
    assert "Insufficient cpu" in status["message"]


async def test_the_container_that_failed_first_is_named_and_the_first_of_the_spec_is_shown(jobs: Jobs) -> None:
    train = container("echo from train; sleep 1; exit 17", "train")
    agent = container("echo from agent; sleep 3.5; exit 1", "agent")
    await jobs.submit(job("two", task(containers=[train, agent])))
    status = await jobs.until("two", "Failed")
    assert status["firstFailure"]["exitCode"] == 17
    assert status["firstFailure"]["lastLines"] == ["from train"]
    containers = (await jobs.replica("two"))["containers"]
    assert [(one["name"], one["default"]) for one in containers] == [("train", True), ("agent", False)]
    assert (await jobs.http.get(jobs.path("two", "logs"))).text == "from train\n"


async def test_the_annotation_names_the_container_whose_log_is_shown(jobs: Jobs) -> None:
    annotated = task(containers=[container("echo from proxy", "proxy"), container("echo from train", "train")])
    annotated["template"]["metadata"] = {"annotations": {"kubectl.kubernetes.io/default-container": "train"}}
    await jobs.submit(job("injected", annotated))
    await jobs.until("injected", "Succeeded")
    assert (await jobs.http.get(jobs.path("injected", "logs"))).text == "from train\n"
    merged = await jobs.http.get(jobs.path("injected", "logs"), params={"merged": "true"})
    assert merged.text == "worker[0] from train\n"


async def test_the_log_before_a_restart_in_place_is_readable(jobs: Jobs, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = f"test -e {mark} && echo again && exec sleep 600; touch {mark}; echo crashed; exit 1"
    await jobs.submit(job("resumed", task(containers=[container(script, **RESTARTED_IN_PLACE)])))
    await jobs.until_log("resumed", "again")
    assert (await jobs.log("resumed", previous="true")).text == "crashed\n"
    await jobs.cancel("resumed")

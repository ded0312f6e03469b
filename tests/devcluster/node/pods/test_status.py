import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from devcluster.formats.quantity import parse, qos_class
from devcluster.node.containers.command import substitute
from devcluster.node.containers.images import PADDLE, RUNTIME, NoImageError, argv_for, find_image, load_images
from devcluster.node.containers.record import ContainerRecord
from devcluster.node.containers.restarts import ContainerRole
from devcluster.node.log_server import LogUnavailableError, choose_restart
from devcluster.node.pods.history import initial_records, recover_records
from devcluster.node.pods.status import PodState, pod_phase, pod_status
from devcluster.testing.script import ScriptError, parse_script

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WAITING: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
RUNNING: dict[str, Any] = {"running": {"startedAt": "2026-01-02T03:04:05Z"}}


def ended(code: int) -> dict[str, Any]:
    return {"terminated": {"exitCode": code}}


def record(
    state: dict[str, Any], role: ContainerRole = ContainerRole.MAIN, last: dict[str, Any] | None = None
) -> ContainerRecord:
    return ContainerRecord("c", "image", role, {"name": "c"}, state, last or {}, started="running" in state)


def pod_state(**changes: Any) -> PodState:
    return PodState(pod_ip="127.2.0.1", host_ip="127.0.0.1", started_at=NOW, **changes)


def pod(policy: str = "Never", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "generation": 1},
        "spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "image"}]},
        "status": status,
    }


@pytest.mark.parametrize(
    ("policy", "records", "terminating", "phase"),
    [
        ("Never", [record(WAITING)], False, "Pending"),
        ("Never", [record(RUNNING)], False, "Running"),
        ("Never", [record(ended(0))], False, "Succeeded"),
        ("Never", [record(ended(3))], False, "Failed"),
        ("Never", [record(ended(3)), record(RUNNING)], False, "Running"),
        ("Never", [record(ended(3)), record(ended(0))], False, "Failed"),
        ("OnFailure", [record(ended(3))], False, "Running"),
        ("OnFailure", [record(ended(3))], True, "Failed"),
        ("Always", [record(ended(0))], False, "Running"),
        ("Always", [record(ended(0))], True, "Succeeded"),
        ("Always", [record(WAITING, last=ended(1))], False, "Running"),
        ("Always", [record(WAITING, last=ended(1))], True, "Failed"),
        ("Never", [record(RUNNING, ContainerRole.INIT), record(WAITING)], False, "Pending"),
        ("Never", [record(ended(1), ContainerRole.INIT), record(WAITING)], False, "Failed"),
        ("OnFailure", [record(ended(1), ContainerRole.INIT), record(WAITING)], False, "Pending"),
        ("Never", [record(ended(0), ContainerRole.INIT), record(RUNNING)], False, "Running"),
        ("Never", [record(WAITING, ContainerRole.SIDECAR), record(WAITING)], False, "Pending"),
        ("Never", [record(RUNNING, ContainerRole.SIDECAR), record(ended(0))], False, "Succeeded"),
        ("Never", [record(ended(0), ContainerRole.SIDECAR), record(ended(0))], False, "Succeeded"),
        ("Never", [record(ended(1), ContainerRole.SIDECAR), record(WAITING)], True, "Pending"),
    ],
)
def test_phase_follows_from_the_containers(
    policy: str,
    records: list[ContainerRecord],
    terminating: bool,  # noqa: FBT001
    phase: str,
) -> None:
    assert pod_phase(pod(policy), records, pod_state(terminating=terminating)) == phase


def test_a_failed_pod_turns_failed_only_after_its_containers() -> None:
    failure = pod_state(failure=("DeadlineExceeded", "too long"))
    assert pod_status(pod(), [record(RUNNING)], failure, NOW)["reason"] is None
    status = pod_status(pod(), [record(ended(143))], failure, NOW)
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "DeadlineExceeded", "too long")


def test_a_rejected_pod_has_no_containers() -> None:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "then"}
    subject = pod() | {"status": {"conditions": [scheduled]}}
    status = pod_status(subject, [record(WAITING)], pod_state(failure=("OutOfcpu", "no room"), rejected=True), NOW)
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "OutOfcpu", "no room")
    assert status["conditions"] == [scheduled]
    assert status.keys().isdisjoint({"containerStatuses", "hostIP", "podIP"})


def test_statuses_are_sorted_by_name_except_those_of_init_containers() -> None:
    names = [("z-first", ContainerRole.INIT), ("a-next", ContainerRole.SIDECAR)]
    names += [("train", ContainerRole.MAIN), ("agent", ContainerRole.MAIN)]
    records = [ContainerRecord(name, "image", role, {"name": name}, WAITING) for name, role in names]
    status = pod_status(pod(), records, pod_state(), NOW)
    assert [one["name"] for one in status["initContainerStatuses"]] == ["z-first", "a-next"]
    assert [one["name"] for one in status["containerStatuses"]] == ["agent", "train"]


def test_conditions_of_others_and_transition_times_are_kept() -> None:
    before = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "then"},
        {"type": "Initialized", "status": "True", "lastTransitionTime": "then"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "then"},
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
    ]
    status = pod_status(pod(conditions=before), [record(RUNNING)], pod_state(), NOW)
    found = {c["type"]: c for c in status["conditions"]}
    assert found["PodScheduled"] == before[0]
    assert found["DisruptionTarget"] == before[3]
    assert found["Initialized"]["lastTransitionTime"] == "then"
    assert (found["Ready"]["status"], found["Ready"]["lastTransitionTime"]) == ("False", "2026-01-02T03:04:05Z")


def known(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "c", "state": state, "containerID": "x://1", **more}]}


@pytest.mark.parametrize(
    ("policy", "status", "failed", "state"),
    [
        ("Never", {}, False, "waiting"),
        ("Never", known(RUNNING), True, "terminated"),
        ("OnFailure", known(RUNNING), False, "waiting"),
        ("OnFailure", known(ended(0)), False, "terminated"),
        ("Always", known(ended(0)), False, "waiting"),
    ],
)
def test_pods_of_a_former_agent_are_recovered(policy: str, status: Any, failed: bool, state: str) -> None:  # noqa: FBT001
    subject = pod(policy, **status)
    records = initial_records(subject)
    failure, disruption = recover_records(subject, records)
    assert (failure is not None, disruption is not None) == (failed, failed)
    assert list(records[0].state) == [state]


@pytest.mark.parametrize(
    ("image", "command", "args", "argv"),
    [
        ("debian", ["a"], ["b"], ("a", "b")),
        ("debian", [], [], ("sh",)),
        ("docker.io/library/busybox", [], ["ls"], ("ls",)),
        ("python:3.12-slim", ["python", "-V"], ["x"], (sys.executable, "-V", "x")),
        ("python", ["paddle_k8s"], ["start_master"], ("sh", "-c", PADDLE, "start_master")),
        ("jobgate", ["jobgate", "cache-runtime"], [], ("sh", "-c", RUNTIME, sys.executable, "cache-runtime")),
        ("m3ngyang/etcd:v3.2.1", ["etcd", "-name"], [], ("sh", "-c", "exec sleep 2147483647", "-name")),
    ],
)
def test_command_line_of_an_image(image: str, command: list[str], args: list[str], argv: tuple[str, ...]) -> None:
    assert argv_for(find_image(load_images(None), image), image, command, args) == argv


def test_a_word_of_an_images_file_may_become_several(tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    file.write_text('images: [{match: "tool:*", words: {run: [sh, -c, "echo hello"], py: "{python}"}}]')
    image = find_image(load_images(file), "tool:1")
    assert argv_for(image, "tool:1", ["run", "x"], []) == ("sh", "-c", "echo hello", "x")
    assert argv_for(image, "tool:1", ["py"], []) == (sys.executable,)


@pytest.mark.parametrize(
    ("image", "command", "args", "why"),
    [
        ("nosuch:1", [], [], r"no images: 'nosuch:1' matches no entry of its images file /d/images.yaml\. "),
        ("nosuch:1", ["true"], [], r"'nosuch:1' matches no entry.* add the entry {match: 'nosuch:1'} below images"),
        ("pyhton:3.12", ["python", "train.py"], [], r"'pyhton:3.12' matches no entry"),
        (
            "paddlepaddle/paddle:2",
            [],
            [],
            r"'paddlepaddle/paddle:2' matches the entry 'paddlepaddle/\*', which has no entrypoint and no cmd",
        ),
        (
            "jobgate",
            [],
            [],
            r"'jobgate' matches the entry 'jobgate:\*', which has no entrypoint and no cmd.*Set command",
        ),
    ],
)
def test_an_unknown_image_and_a_container_with_nothing_to_run_are_refused(
    image: str, command: list[str], args: list[str], why: str
) -> None:
    with pytest.raises(NoImageError, match=why):
        argv_for(find_image(load_images(None), image), image, command, args, file=Path("/d/images.yaml"))


def test_an_entry_with_only_a_pattern_runs_the_command_of_the_container(tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    assert find_image(load_images(file), "nosuch:1") is None
    file.write_text("images: [{match: 'nosuch:1'}]")
    assert argv_for(find_image(load_images(file), "nosuch:1"), "nosuch:1", ["true"], ["x"]) == ("true", "x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/data", "/real"),
        ("cat /data/x", "cat /real/x"),
        ("/database", "/database"),
        ("/my/data", "/my/data"),
        ("a=/data,/data/sub/y", "a=/real,/inner/y"),
    ],
)
def test_paths_are_substituted_whole(text: str, expected: str) -> None:
    assert substitute(text, [("/data/sub", "/inner"), ("/data", "/real")]) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("1500m", 1.5), ("1Gi", 2**30), ("1k", 1000), ("2e3", 2000), ("0.5", 0.5), ("1E", 10**18)],
)
def test_quantities(text: str, value: float) -> None:
    assert float(parse(text)) == value


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_qos(resources: dict[str, Any], expected: str) -> None:
    assert qos_class({"spec": {"containers": [{"name": "c", "resources": resources}]}}) == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not JSON"),
        ("{}", "expected a list"),
        ('[{"phase": "Running"}, {"after": 1}]', r"\[1\]: expected 'after'"),
        ('[{"phase": "Running", "evict": "x"}]', "one of phase"),
        ('[{"phase": "Running", "colour": 1}]', "one of phase"),
        ('[{"after": "1", "phase": "Running"}]', "seconds as a number"),
    ],
)
def test_scripts_are_checked(text: str, complaint: str) -> None:
    with pytest.raises(ScriptError, match=complaint):
        parse_script(text)


@pytest.mark.parametrize(
    ("status", "previous", "expected"),
    [
        ({"state": RUNNING, "restartCount": 2}, False, (2, True)),
        ({"state": ended(1), "restartCount": 2}, False, (2, False)),
        ({"state": RUNNING, "restartCount": 2, "lastState": ended(1)}, True, (1, False)),
        ({"state": WAITING, "restartCount": 0, "lastState": {"terminated": {"containerID": "x/0"}}}, False, (0, False)),
        ({"state": WAITING, "restartCount": 1, "lastState": {"terminated": {"containerID": "x/0"}}}, False, (0, False)),
        ({"state": WAITING, "restartCount": 0, "lastState": {"terminated": {"containerID": "x/0"}}}, True, (0, False)),
    ],
)
def test_log_request_selects_the_instance(status: dict[str, Any], previous: bool, expected: tuple[int, bool]) -> None:  # noqa: FBT001
    assert choose_restart(pod(containerStatuses=[{"name": "c", **status}]), "c", previous=previous) == expected


@pytest.mark.parametrize(
    ("container", "status", "previous", "words"),
    [
        ("zzz", {}, False, 'container "zzz" not found in pod "p"'),
        ("c", {"state": WAITING}, False, 'container "c" in pod "p" is waiting to start: ContainerCreating'),
        ("c", {"state": {"waiting": {"reason": "ImagePullBackOff"}}}, False, "trying and failing to pull image"),
        ("c", {"state": RUNNING}, True, 'previous terminated container "c" in pod "p" not found'),
    ],
)
def test_missing_logs_are_refused(container: str, status: dict[str, Any], previous: bool, words: str) -> None:  # noqa: FBT001
    with pytest.raises(LogUnavailableError, match=words):
        choose_restart(pod(containerStatuses=[{"name": "c", **status}]), container, previous=previous)

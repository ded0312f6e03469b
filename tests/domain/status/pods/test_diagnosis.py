from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.domain.kubernetes.objects import Event, Pod
from app.domain.queueing.workload import GATES, SUSPENDING_PARENT
from app.domain.status.pods.diagnosis import describe_server_gates, diagnose, diagnose_events, diagnose_started

T0, T1 = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": T1}
NO_NODE = "0/3 nodes are available: 3 Insufficient cpu."


def a_pod(status: dict[str, Any], node: str = "n1") -> Pod:
    return msgspec.convert({"metadata": {"creationTimestamp": T0}, "spec": {"nodeName": node}, "status": status}, Pod)


def unplaced(message: str) -> list[dict[str, Any]]:
    return [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]


def unbound(status: str, reason: str, message: str = "") -> Pod:
    condition = {"type": "PodScheduled", "status": status, "reason": reason, "message": message}
    return a_pod({"conditions": [condition]}, node="")


def gated(*gates: str, annotations: dict[str, str] | None = None, **status: Any) -> Pod:
    spec = {"schedulingGates": [{"name": gate} for gate in gates]}
    metadata = {"creationTimestamp": T0, "annotations": annotations or {}}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Pod)


def in_gang(**status: Any) -> Pod:
    spec = {"schedulingGroup": {"podGroupName": "group-1"}}
    return msgspec.convert({"metadata": {"creationTimestamp": T0}, "spec": spec, "status": status}, Pod)


def waiting(reason: str, message: str = "", *, init: bool = False) -> Pod:
    field = "initContainerStatuses" if init else "containerStatuses"
    state = {"waiting": {"reason": reason, "message": message}}
    return a_pod({"conditions": [SCHEDULED], field: [{"name": "main", "state": state}]})


@pytest.mark.parametrize(
    ("pod", "code", "words"),
    [
        (a_pod({}, node=""), "NotScheduled", 'the scheduler "default-scheduler" has not reported'),
        (gated("example.com/hold"), "SchedulingGated", "remove the scheduling gate example.com/hold"),
        (gated("a/b", "c/d", "e/f", "g/h"), "SchedulingGated", "the scheduling gates a/b, c/d, e/f and 1 more"),
        (
            gated("kueue.x-k8s.io/admission"),
            "SchedulingGated",
            "Kueue queues this pod by itself. For a queue of the whole",
        ),
        (
            gated(*GATES, annotations={SUSPENDING_PARENT: "jobgate-1"}),
            "SchedulingGated",
            "the pod is not scheduled before jobgate removes the scheduling gates",
        ),
        (
            gated(*GATES, "example.com/hold", annotations={SUSPENDING_PARENT: "jobgate-1"}),
            "SchedulingGated",
            "the pod is not scheduled before other clients remove the scheduling gates",
        ),
        (unbound("False", "Unschedulable", NO_NODE), "Unschedulable", NO_NODE),
        (in_gang(conditions=unplaced(NO_NODE)), "GangUnschedulable", NO_NODE),
        (in_gang(), "NotScheduled", "yet; it places all pods of the PodGroup group-1 together"),
        (unbound("False", "SchedulingGated", "Scheduling is blocked"), "SchedulingGated", "blocked"),
        (unbound("False", "SchedulerError", "oops"), "NotScheduled", "oops"),
        (a_pod({"conditions": [SCHEDULED]}), "ContainerCreating", "n1"),
        (waiting("ErrImagePull", "not found"), "ImagePull", "not found"),
        (waiting("ImagePullBackOff", 'Back-off pulling image "x"'), "ImagePull", "Back-off pulling"),
        (waiting("ErrImageNeverPull"), "ImagePull", "ErrImageNeverPull"),
        (waiting("InvalidImageName"), "InvalidImageName", "main"),
        (waiting("CreateContainerConfigError", 'secret "s" not found'), "ContainerConfig", 'secret "s"'),
        (waiting("CreateContainerError"), "ContainerStart", "main"),
        (waiting("RunContainerError"), "ContainerStart", "main"),
        (waiting("CrashLoopBackOff", "back-off 5m0s"), "CrashLoop", "5m0s"),
        (waiting("ContainerCreating"), "ContainerCreating", "n1"),
        (waiting("PodInitializing"), "ContainerCreating", "n1"),
        (waiting("ErrImagePull", "denied", init=True), "ImagePull", "denied"),
    ],
)
def test_the_pending_reason_of_a_pod(pod: Pod, code: str, words: str) -> None:
    reason = diagnose(pod)
    assert reason is not None
    assert reason.code == code
    assert words in reason.message


def with_init(init_state: dict[str, Any], **more: Any) -> Pod:
    main = {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}
    init = {"name": "fetch", "state": init_state, **more}
    return a_pod({"conditions": [SCHEDULED], "initContainerStatuses": [init], "containerStatuses": [main]})


def test_a_pod_with_running_init_containers_is_initializing() -> None:
    reason = diagnose(with_init({"running": {"startedAt": T0}}))
    assert reason is not None
    assert reason.code == "Initializing"
    assert "fetch" in reason.message
    assert reason.since == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def test_a_started_sidecar_delays_nothing() -> None:
    reason = diagnose(with_init({"running": {"startedAt": T0}}, started=True))
    assert reason is not None
    assert reason.code == "ContainerCreating"


def test_a_running_pod_has_no_pending_reason() -> None:
    running = {"name": "main", "state": {"running": {"startedAt": T0}}}
    assert diagnose(a_pod({"conditions": [SCHEDULED], "containerStatuses": [running]})) is None


CRASHED = {"terminated": {"exitCode": 1, "reason": "Error", "message": "loading\nno such rate\n", "finishedAt": T1}}
STARTS_AGAIN = {"waiting": {"reason": "ContainerCreating"}}


def backing_off(name: str, reason: str = "CrashLoopBackOff", **last: Any) -> dict[str, Any]:
    state = {
        "waiting": {"reason": reason, "message": f"back-off 5m0s restarting failed container={name} pod=j-0_ns(u)"}
    }
    return {"name": name, "state": state, "lastState": last or CRASHED, "restartCount": 4}


def started(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> Pod:
    main = {"name": "main", "state": {"running": {"startedAt": T0}}}
    return a_pod(
        {
            "phase": "Running",
            "conditions": [SCHEDULED],
            "initContainerStatuses": init,
            "containerStatuses": containers or [main],
        }
    )


LOOP = 'container "%s" is restarted again and again: exit code 1, Error: no such rate'


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (started(), None),
        (started(backing_off("train")), ("CrashLoop", LOOP % "train")),
        (started(init=(backing_off("proxy"),)), ("CrashLoop", LOOP % "proxy")),
        (
            started(backing_off("train", terminated={"exitCode": 137, "reason": "OOMKilled"})),
            ("CrashLoop", 'container "train" is restarted again and again: exit code 137, OOMKilled'),
        ),
        # The image, a Secret or the program of a later run.
        (started(backing_off("train", "ImagePullBackOff")), ("ImagePull", 'container "train": back-off 5m0s')),
        (started(backing_off("train", "CreateContainerConfigError")), ("ContainerConfig", 'container "train": back')),
        (started(backing_off("train", "CreateContainerError")), ("ContainerStart", 'container "train": back-off')),
        # A restart in progress is no fault.
        (started({"name": "train", "state": STARTS_AGAIN, "lastState": CRASHED}), None),
        (started({"name": "train", "state": {"running": {"startedAt": T0}}, "lastState": CRASHED}), None),
    ],
)
def test_the_fault_of_a_started_pod(pod: Pod, expected: tuple[str, str] | None) -> None:
    fault = diagnose_started(pod)
    assert (fault is None) is (expected is None)
    if fault is not None and expected is not None:
        assert fault.code == expected[0]
        assert fault.message.startswith(expected[1])


def test_a_container_that_crashes_is_at_fault_since_its_last_end() -> None:
    pod = started(backing_off("train"))
    for found in (diagnose_started(pod), diagnose(pod)):
        assert found is not None
        assert found.since == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def event(reason: str, message: str = "", minute: int = 0) -> Event:
    at = f"2026-01-01T00:{minute:02}:00Z"
    return msgspec.convert({"reason": reason, "message": message, "lastTimestamp": at}, Event)


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([], None),
        ([event("FailedMount", 'configmap "c" not found')], "Volume"),
        ([event("FailedAttachVolume")], "Volume"),
        ([event("FailedCreatePodSandBox")], "Sandbox"),
        ([event("FailedScheduling", NO_NODE)], "Unschedulable"),
        ([event("Failed", 'Failed to pull image "x": denied')], "ImagePull"),
        ([event("Failed", "Error: ImagePullBackOff")], "ImagePull"),
        ([event("BackOff", 'Back-off pulling image "x"')], "ImagePull"),
        ([event("BackOff", "Back-off restarting failed container main")], "CrashLoop"),
        ([event("Failed", 'Error: secret "s" not found')], "ContainerConfig"),
        ([event("Failed", "Error: failed to create containerd task")], "ContainerStart"),
        ([event("Pulling", 'Pulling image "x"')], "ContainerCreating"),
        ([event("FailedScheduling", minute=1), event("Scheduled", minute=2)], None),
        ([event("FailedMount", minute=3), event("Scheduled", minute=2)], "Volume"),
        ([event("Sneezed", minute=3), event("FailedMount", minute=2)], "Volume"),
        ([msgspec.convert({"reason": "FailedMount"}, Event)], None),
    ],
)
def test_the_pending_reason_from_events(events: list[Event], code: str | None) -> None:
    reason = diagnose_events(events)
    assert (reason.code if reason else None) == code


def test_a_gated_pod_waits_since_its_creation_and_names_its_gates_instead_of_the_clusters_message() -> None:
    # As the API server sets it: without a time, and without the name of a gate.
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "is blocked"}
    reason = diagnose(gated("kueue.x-k8s.io/admission", conditions=[condition]))
    assert reason is not None
    assert (reason.code, reason.since) == ("SchedulingGated", datetime(2026, 1, 1, tzinfo=UTC))
    assert "kueue.x-k8s.io/admission" in reason.message


def test_the_scheduler_that_has_not_answered_is_named() -> None:
    reason = diagnose(msgspec.convert({"spec": {"schedulerName": "volcano"}}, Pod))
    assert reason is not None
    assert reason.message == 'the scheduler "volcano" has not reported a result for the pod yet'


@pytest.mark.parametrize(
    ("gate", "labels", "end"),
    [
        ("example.com/hold", {}, "remove the scheduling gate example.com/hold"),
        ("kueue.x-k8s.io/admission", {}, "and delete the pod: another one replaces it"),
        ("kueue.x-k8s.io/admission", {"kueue.x-k8s.io/queue-name": "q"}, "when the LocalQueue q has quota for it"),
    ],
)
def test_the_gates_of_a_server_name_the_remedy(gate: str, labels: dict[str, str], end: str) -> None:
    pod = msgspec.convert({"metadata": {"labels": labels}, "spec": {"schedulingGates": [{"name": gate}]}}, Pod)
    assert describe_server_gates(pod).endswith(end)

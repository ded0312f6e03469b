from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Pod
from app.domain.plan import Rank
from app.domain.status.observed import ContainerRestart, ObservedPod
from app.domain.status.pods.observation import observe_pod
from app.domain.vocabulary import PendingCode, ReplicaPhase

T0, T1 = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
AT_T1 = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
RUNNING = {"running": {"startedAt": T0}}
EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
WAITING = {"waiting": {"reason": "ContainerCreating"}}


def ended(code: int, **more: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "startedAt": T0, "finishedAt": T1, **more}}


def a_pod(
    *states: dict[str, Any],
    phase: str = "Running",
    node: str = "n1",
    init: tuple[dict[str, Any], ...] = (),
    sidecar: bool = False,
    grace: int | None = None,
    metadata: dict[str, Any] | None = None,
    **status: Any,
) -> Pod:
    """A pod with one container a state; `grace` is given of one that is being deleted."""
    deletion = {} if grace is None else {"deletionTimestamp": T1, "deletionGracePeriodSeconds": grace}
    policy = {"restartPolicy": "Always"} if sidecar else {}
    document = {
        "metadata": {
            "name": "j-worker-3",
            "uid": "u1",
            "resourceVersion": "42",
            "creationTimestamp": T0,
            "labels": {labels.TASK: "worker", labels.TASK_RANK: "3", labels.ATTEMPT: "2"},
            "finalizers": [labels.EVIDENCE_FINALIZER],
            **deletion,
            **(metadata or {}),
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": f"c{i}"} for i in range(max(len(states), 1))],
            "initContainers": [{"name": f"i{i}", **policy} for i in range(len(init))],
        },
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": f"c{i}", "state": state} for i, state in enumerate(states)],
            "initContainerStatuses": [{"name": f"i{i}", "state": state} for i, state in enumerate(init)],
            **status,
        },
    }
    return msgspec.convert(document, Pod)


def seen(pod: Pod, *lost: str) -> ObservedPod:
    return observe_pod(pod, lost_nodes=frozenset(lost))


@pytest.mark.parametrize(
    ("pod", "phase"),
    [
        (a_pod(phase="Pending", node=""), "Creating"),
        (a_pod(phase="Pending"), "Pending"),
        (a_pod(WAITING, phase="Pending"), "Pending"),
        (a_pod(RUNNING, WAITING), "Pending"),
        (a_pod(RUNNING), "Running"),
        (a_pod(RUNNING, ended(0)), "Running"),
        (a_pod(ended(0)), "Running"),
        (a_pod(ended(0), phase="Succeeded"), "Succeeded"),
        (a_pod(ended(1), phase="Failed"), "Failed"),
        (a_pod(RUNNING, phase="Unknown"), "Unknown"),
        (a_pod(RUNNING, reason="NodeLost"), "Unknown"),
        (a_pod(WAITING, phase="Pending", init=(RUNNING,)), "Pending"),
        (a_pod(RUNNING, init=(RUNNING,), sidecar=True), "Running"),
    ],
)
def test_phase(pod: Pod, phase: str) -> None:
    assert seen(pod).phase == phase


def test_a_container_that_is_restarted_in_place_has_started() -> None:
    pod = a_pod(WAITING, containerStatuses=[{"name": "c0", "state": WAITING, "lastState": ended(1), "restartCount": 1}])
    observed = seen(pod)
    assert observed.phase is ReplicaPhase.RUNNING
    assert observed.containers[0].state == "waiting"
    assert observed.containers[0].exit_code == 1


def test_a_running_pod_has_its_fault_and_its_restarts_in_place() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}}
    crashed = {"name": "c0", "state": waiting, "lastState": ended(1, reason="Error"), "restartCount": 3}
    observed = seen(a_pod(RUNNING, containerStatuses=[crashed]))
    assert (observed.phase, observed.pending and observed.pending.code) == (
        ReplicaPhase.RUNNING,
        PendingCode.CRASH_LOOP,
    )
    assert observed.restarts_in_place == (ContainerRestart(container="c0", number=3, cause="exit code 1, Error"),)
    # A pod that has ended has no fault that could pass.
    assert seen(a_pod(RUNNING, containerStatuses=[crashed], phase="Failed")).pending is None


def test_a_lost_node_makes_live_pods_unknown_and_ended_ones_stay() -> None:
    assert seen(a_pod(RUNNING), "n1").phase is ReplicaPhase.UNKNOWN
    assert seen(a_pod(RUNNING), "n2").phase is ReplicaPhase.RUNNING
    assert seen(a_pod(ended(0), phase="Succeeded"), "n1").phase is ReplicaPhase.SUCCEEDED
    assert seen(a_pod(phase="Pending", node=""), "").phase is ReplicaPhase.CREATING


def test_a_pod_on_a_lost_node_names_the_node_since_the_cluster_marked_it() -> None:
    unready = {"type": "Ready", "status": "False", "lastTransitionTime": T1}
    pending = seen(a_pod(RUNNING, conditions=[unready]), "n1").pending
    assert pending is not None
    assert (pending.code, pending.message, pending.since) == (
        PendingCode.NOT_READY_NODE,
        "node n1 does not answer",
        AT_T1,
    )


@pytest.mark.parametrize(
    ("pod", "over"),
    [
        (a_pod(RUNNING), False),
        (a_pod(ended(0)), False),
        (a_pod(ended(0), phase="Succeeded"), True),
        (a_pod(phase="Failed"), True),
        (a_pod(RUNNING, grace=30), False),
        (a_pod(ended(137), grace=30), True),
        (a_pod(ended(137), RUNNING, grace=30), False),
        (a_pod(ended(137), WAITING, grace=30), True),
        (a_pod(WAITING, phase="Pending", grace=30), False),
        (a_pod(phase="Pending", grace=30), False),
        (a_pod(phase="Pending", node="", grace=0), True),
        (a_pod(RUNNING, grace=0), True),
        (a_pod(ended(143), grace=30, init=(RUNNING,), sidecar=True), False),
    ],
)
def test_when_no_container_can_run_any_more(pod: Pod, *, over: bool) -> None:
    assert seen(pod).ended is over


@pytest.mark.parametrize(
    ("pod", "code"),
    [
        (a_pod(RUNNING), None),
        (a_pod(ended(0), RUNNING), None),
        (a_pod(ended(0), ended(0), phase="Succeeded"), 0),
        (a_pod(ended(0), ended(3), ended(4), phase="Failed"), 3),
        (a_pod(WAITING, init=(ended(7),), phase="Failed"), 7),
        (a_pod(ended(0), init=(ended(137),), sidecar=True, phase="Succeeded"), 0),
        (a_pod(phase="Failed", reason="Evicted"), None),
    ],
)
def test_exit_code(pod: Pod, code: int | None) -> None:
    assert seen(pod).exit_code == code


@pytest.mark.parametrize(
    ("state", "signal"),
    [
        (ended(0), None),
        (ended(1), None),
        (ended(128), None),
        (ended(137), 9),
        (ended(143), 15),
        (ended(255), None),
        (ended(2, signal=11), 11),
    ],
)
def test_signal(state: dict[str, Any], signal: int | None) -> None:
    assert seen(a_pod(state)).containers[0].signal == signal


def test_a_succeeded_pod_was_not_disrupted() -> None:
    pod = a_pod(ended(0), phase="Succeeded", conditions=[EVICTED])
    assert seen(pod).disruption is None


def test_reason_and_message() -> None:
    killed = seen(a_pod(ended(137, reason="OOMKilled"), phase="Failed"))
    assert killed.reason == "OOMKilled"
    assert killed.message == 'container "c0" failed with exit code 137, signal 9'
    failed = seen(a_pod(ended(2, reason="Error", message="no such file"), phase="Failed"))
    assert (failed.reason, failed.message) == ("Error", "no such file")
    evicted = seen(a_pod(ended(137), phase="Failed", reason="Evicted", message="The node was low on memory."))
    assert (evicted.reason, evicted.message) == ("Evicted", "The node was low on memory.")
    assert seen(a_pod(ended(0), phase="Succeeded")).reason is None


def test_all_other_fields_of_an_observation() -> None:
    pod = seen(a_pod(ended(0), phase="Succeeded", podIP="10.0.0.1"))
    assert (pod.key, pod.attempt, pod.version, pod.node, pod.pod_ip) == (Rank("worker", 3), 2, 42, "n1", "10.0.0.1")
    assert pod.held
    assert pod.finished_at == AT_T1
    assert pod.pending is None
    assert seen(a_pod(RUNNING)).finished_at is None
    waiting = seen(a_pod(phase="Pending", node="")).pending
    assert waiting is not None
    assert waiting.code is PendingCode.NOT_SCHEDULED


def test_broken_labels_give_a_key_that_no_plan_contains() -> None:
    pod = seen(a_pod(RUNNING, metadata={"labels": {labels.TASK_RANK: "-1", labels.ATTEMPT: "٣"}, "finalizers": []}))
    assert pod.key == Rank("", -1)
    assert pod.attempt == -1
    assert not pod.held


states = st.sampled_from([RUNNING, WAITING, ended(0), ended(1), {}])


@given(
    main=st.lists(states, max_size=3),
    init=st.lists(states, max_size=2),
    phase=st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed", "Unknown"]),
    node=st.sampled_from(["", "n1"]),
    grace=st.sampled_from([None, 0, 30]),
    lost=st.booleans(),
)
def test_every_pod_has_one_phase(
    main: list[dict[str, Any]], init: list[dict[str, Any]], phase: str, node: str, grace: int | None, *, lost: bool
) -> None:
    pod = seen(a_pod(*main, init=tuple(init), phase=phase, node=node, grace=grace), *(["n1"] if lost else []))
    assert pod.phase is not ReplicaPhase.DELETED
    if pod.phase in (ReplicaPhase.SUCCEEDED, ReplicaPhase.FAILED):
        assert pod.ended
    assert pod.pending is None or pod.phase.is_live
    if pod.ended:
        assert phase in ("Succeeded", "Failed") or pod.deleting


def test_a_container_that_never_started_has_no_start() -> None:
    """The kubelet reports the epoch as the start of a container that the runtime could not start."""
    failed = ended(128, reason="StartError", startedAt="1970-01-01T00:00:00Z")
    observed = observe_pod(a_pod(failed, phase="Failed"), lost_nodes=())
    (container,) = observed.containers
    assert (observed.started_at, container.started_at) == (None, None)
    assert (observed.finished_at, container.finished_at) == (AT_T1, AT_T1)


def test_the_begin_of_a_deletion_and_the_finalizers_of_other_clients_are_observed() -> None:
    finalizers = [labels.EVIDENCE_FINALIZER, "example.com/hold"]
    observed = observe_pod(a_pod(grace=30, metadata={"finalizers": finalizers}), lost_nodes=())
    assert (observed.held, observed.kept_by) == (True, ("example.com/hold",))
    assert observed.deletion_deadline is not None
    assert observed.deleted_at == observed.deletion_deadline - timedelta(seconds=30)

"""The end of a main container beside containers that run on, and of any container beside others."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Pod
from app.domain.status.observed import ObservedPod
from app.domain.status.pods.observation import observe_pod

T0, T1 = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
RUNNING = {"running": {"startedAt": T0}}
WAITING = {"waiting": {"reason": "ContainerCreating"}}
RESTARTS = {"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}
OTHERWISE = {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [0, 3]}}
AT = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def ended(code: int) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "startedAt": T0, "finishedAt": T1}}


def a_pod(
    train: dict[str, Any],
    proxy: dict[str, Any] | None = None,
    *,
    main: str | None = "train",
    phase: str = "Running",
    grace: int | None = None,
    policy: str = "Never",
    sidecar: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    **own: Any,
) -> ObservedPod:
    """A pod with the containers `proxy` and `train`, of which the last has the fields of `own`; kubelets sort names."""
    states = {"proxy": proxy, "train": train} if proxy is not None else {"train": train}
    metadata: dict[str, Any] = {"name": "j-worker-0", "creationTimestamp": T0, "annotations": dict(annotations or {})}
    if main is not None:
        metadata["annotations"][labels.MAIN_CONTAINER] = main
    if grace is not None:
        metadata |= {"deletionTimestamp": T1, "deletionGracePeriodSeconds": grace}
    document = {
        "metadata": metadata,
        "spec": {
            "nodeName": "n1",
            "restartPolicy": policy,
            "containers": [{"name": "train", **own}, *([{"name": "proxy"}] if proxy is not None else [])],
            "initContainers": [{"name": "mesh", "restartPolicy": "Always"}] if sidecar else [],
        },
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": name, "state": state} for name, state in states.items()],
            "initContainerStatuses": [{"name": "mesh", "state": sidecar}] if sidecar else [],
        },
    }
    return observe_pod(msgspec.convert(document, Pod), lost_nodes=frozenset())


@pytest.mark.parametrize(
    ("pod", "phase", "is_ended", "is_lingering", "code"),
    [
        (a_pod(RUNNING, RUNNING), "Running", False, False, None),
        (a_pod(ended(0), RUNNING), "Succeeded", True, True, 0),
        (a_pod(ended(3), RUNNING), "Failed", True, True, 3),
        (a_pod(ended(0), WAITING), "Succeeded", True, True, 0),
        # The deletion kills the sidecar, and a sidecar may fail before.
        (a_pod(ended(0), ended(137), phase="Failed"), "Succeeded", True, False, 0),
        (a_pod(ended(3), ended(0), phase="Failed"), "Failed", True, False, 3),
        (a_pod(RUNNING, ended(1)), "Running", False, False, 1),
        # Another client has deleted the pod: its processes run until the end of the grace period.
        (a_pod(ended(0), RUNNING, grace=30), "Running", False, False, None),
        (a_pod(ended(0), ended(143), grace=30), "Succeeded", True, False, 0),
        # The kubelet ends a pod of which all containers have ended, native sidecars included.
        (a_pod(ended(0), sidecar=RUNNING), "Running", False, False, 0),
        (a_pod(ended(0), ended(0)), "Running", False, False, 0),
        # It restarts the container in place.
        (a_pod(ended(1), RUNNING, policy="OnFailure"), "Running", False, False, 1),
        (a_pod(ended(0), RUNNING, policy="OnFailure"), "Succeeded", True, True, 0),
        (a_pod(ended(0), RUNNING, policy="Always"), "Running", False, False, None),
        (a_pod(ended(3), RUNNING, restartPolicyRules=[RESTARTS]), "Running", False, False, 3),
        (a_pod(ended(4), RUNNING, restartPolicyRules=[RESTARTS]), "Failed", True, True, 4),
        (a_pod(ended(4), RUNNING, restartPolicyRules=[OTHERWISE]), "Running", False, False, 4),
        (a_pod(ended(1), RUNNING, restartPolicy="OnFailure"), "Running", False, False, 1),
        # Without the annotation, or with the name of no container, the whole pod counts.
        (a_pod(ended(0), RUNNING, main=None), "Running", False, False, None),
        (a_pod(ended(0), RUNNING, main="other"), "Running", False, False, None),
        (a_pod(ended(0), ended(137), main=None, phase="Failed"), "Failed", True, False, 137),
    ],
)
def test_the_end_of_the_main_container_is_that_of_the_replica(
    *, pod: ObservedPod, phase: str, is_ended: bool, is_lingering: bool, code: int | None
) -> None:
    assert (pod.phase, pod.ended, pod.lingering, pod.exit_code) == (phase, is_ended, is_lingering, code)


def test_the_failure_of_the_main_container_is_that_of_the_replica() -> None:
    pod = a_pod(ended(3), ended(1))
    assert a_pod(ended(3), RUNNING).failed_container == "train"
    assert (a_pod(ended(3), ended(1), phase="Failed").failed_container, pod.ended) == ("train", False)
    assert a_pod(ended(3), RUNNING).message == 'container "train" failed with exit code 3'
    assert a_pod(ended(0), ended(1), phase="Failed").message is None
    assert a_pod(ended(3), RUNNING).finished_at == AT


def test_the_main_container_has_the_default_log() -> None:
    annotations = {"kubectl.kubernetes.io/default-container": "proxy"}
    pod = a_pod(RUNNING, RUNNING, annotations=annotations)
    assert [one.name for one in pod.containers if one.default] == ["train"]
    pod = a_pod(RUNNING, RUNNING, annotations=annotations, main=None)
    assert [one.name for one in pod.containers if one.default] == ["proxy"]


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (a_pod(RUNNING, RUNNING, main=None), None),
        (a_pod(ended(3), RUNNING, main=None), "train exited with 3 at 2026-01-01T00:01:00+00:00; proxy still runs"),
        (a_pod(ended(0), RUNNING, main=None), "train exited with 0 at 2026-01-01T00:01:00+00:00; proxy still runs"),
        # A helper that is done is no fault, unless it has failed.
        (a_pod(RUNNING, ended(0), main=None), None),
        (a_pod(RUNNING, ended(1), main=None), "proxy exited with 1 at 2026-01-01T00:01:00+00:00; train still runs"),
        (a_pod(RUNNING, ended(1)), "proxy exited with 1 at 2026-01-01T00:01:00+00:00; train still runs"),
        (a_pod(ended(0), ended(0), main=None), None),
        (a_pod(ended(0), sidecar=RUNNING, main=None), None),
        (a_pod(ended(3), RUNNING, main=None, policy="Always"), None),
        (a_pod(ended(3), RUNNING, main=None, grace=30), None),
        (a_pod(ended(3), RUNNING), None),
    ],
)
def test_a_container_that_others_outlive_is_a_fault_of_a_running_replica(pod: ObservedPod, message: str | None) -> None:
    assert (pod.pending.code if pod.pending else None, pod.pending.message if pod.pending else None) == (
        "ContainerEnded" if message else None,
        message,
    )

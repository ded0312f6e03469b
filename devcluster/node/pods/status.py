"""The status of a pod, computed as a kubelet does from the states of its containers. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from devcluster import clock
from devcluster.formats.quantity import qos_class
from devcluster.node.containers.images import image_id
from devcluster.node.containers.record import ContainerRecord
from devcluster.node.containers.restarts import ContainerRole, restarts


@dataclass(slots=True, kw_only=True)
class PodState:
    """The state of a pod beyond its containers."""

    pod_ip: str
    host_ip: str
    started_at: datetime
    sandbox_ready: bool = False
    terminating: bool = False
    """True while the pod is stopped: no container is restarted any more."""
    failure: tuple[str, str] | None = None
    """Reason and message if the node has failed the pod: DeadlineExceeded, Evicted, Terminated …"""
    rejected: bool = False
    """Whether this failure is a rejection, before the node did anything for the pod."""
    disruption: tuple[str, str] | None = None
    """Reason and message of the DisruptionTarget condition."""
    overlay: dict[str, Any] = field(default_factory=dict)
    """Fields that a pod script sets. They replace those of the computed status."""


def pod_status(
    pod: Mapping[str, Any], containers: Sequence[ContainerRecord], state: PodState, now: datetime
) -> dict[str, Any]:
    """Return the complete status, with the conditions that other components have set."""
    phase = pod_phase(pod, containers, state)
    reason, message = state.failure if state.failure and phase == "Failed" else (None, None)
    addresses = [{"ip": state.pod_ip}] if state.pod_ip and state.sandbox_ready else None
    # A kubelet sorts these by name, and leaves init containers in the order of the spec.
    mains = sorted((c for c in containers if c.role is ContainerRole.MAIN), key=lambda c: c.name)
    inits = [c for c in containers if c.role is not ContainerRole.MAIN]
    if state.rejected:
        return _rejected_status(pod, state) | state.overlay
    status = {
        "phase": phase,
        "reason": reason,
        "message": message,
        "observedGeneration": pod["metadata"].get("generation"),
        "conditions": _conditions(pod, containers, state, phase, now),
        "hostIP": state.host_ip,
        "hostIPs": [{"ip": state.host_ip}],
        "podIP": addresses[0]["ip"] if addresses else None,
        "podIPs": addresses,
        "startTime": clock.timestamp(state.started_at),
        "initContainerStatuses": [_container_status(c) for c in inits] or None,
        "containerStatuses": [_container_status(c) for c in mains],
        "qosClass": qos_class(pod),
    }
    return status | state.overlay


def _rejected_status(pod: Mapping[str, Any], state: PodState) -> dict[str, Any]:
    """Return the status that rejectPod of the kubelet writes: it has no addresses and no containers."""
    reason, message = state.failure or ("", "")
    return {
        "phase": "Failed",
        "reason": reason,
        "message": message,
        "observedGeneration": pod["metadata"].get("generation"),
        "conditions": list((pod.get("status") or {}).get("conditions") or []),
        "startTime": clock.timestamp(state.started_at),
        "qosClass": qos_class(pod),
    }


def pod_phase(pod: Mapping[str, Any], containers: Sequence[ContainerRecord], state: PodState) -> str:
    """Return the phase that follows from the states of all containers, as getPhase of the kubelet does."""
    # A pod is not terminal while one of its containers runs.
    if state.failure and not any(c.running for c in containers):
        return "Failed"
    policy = pod["spec"].get("restartPolicy", "Always")
    # Init containers come first, so the first one that is not done determines the phase.
    for record in containers:
        if record.role is ContainerRole.INIT and not _init_done(record):
            if record.exit_code and (state.terminating or not _comes_back(record, policy)):
                return "Failed"
            return "Pending"
        if record.role is ContainerRole.SIDECAR and _still_coming_up(record):
            return "Pending"
    mains = [c for c in containers if c.role is ContainerRole.MAIN]
    return _main_phase(mains, policy, terminating=state.terminating)


def _main_phase(mains: Sequence[ContainerRecord], policy: str, *, terminating: bool) -> str:
    if any("waiting" in c.state and not c.last_state for c in mains):
        return "Pending"
    if any(c.running for c in mains):
        return "Running"
    if not terminating and any("waiting" in c.state or _comes_back(c, policy) for c in mains):
        return "Running"
    # A container that waits and is not restarted any more has ended before.
    codes = [c.exit_code if c.exit_code is not None else c.last_state["terminated"]["exitCode"] for c in mains]
    return "Succeeded" if all(code == 0 for code in codes) else "Failed"


def _init_done(record: ContainerRecord) -> bool:
    return record.exit_code == 0


def _still_coming_up(record: ContainerRecord) -> bool:
    """Return whether a sidecar is before its first start. One that has ended does not delay the pod."""
    return record.exit_code is None and not record.started and not record.last_state


def _comes_back(record: ContainerRecord, policy: str) -> bool:
    return record.exit_code is not None and restarts(record.spec, record.role, policy, record.exit_code)


def _container_status(record: ContainerRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "image": record.image,
        "imageID": image_id(record.image) if record.container_id else "",
        "containerID": record.container_id or None,
        "state": record.state,
        "lastState": record.last_state,
        "ready": record.ready,
        "started": record.started,
        "restartCount": record.restart_count,
    }


def _conditions(
    pod: Mapping[str, Any],
    containers: Sequence[ContainerRecord],
    state: PodState,
    phase: str,
    now: datetime,
) -> list[dict[str, Any]]:
    former = {c["type"]: c for c in (pod.get("status") or {}).get("conditions") or []}
    ended = phase in ("Succeeded", "Failed")
    wanted = [
        _condition("PodReadyToStartContainers", state.sandbox_ready and not ended),
        _initialized_condition(containers, phase),
        *_ready(pod, containers, former, phase),
    ]
    if state.disruption:
        reason, message = state.disruption
        wanted.append(_condition("DisruptionTarget", met=True, reason=reason, message=message))
    ours = {c["type"] for c in wanted}
    kept = [c for name, c in former.items() if name not in ours]
    return [*(_add_time(c, former.get(c["type"]), now) for c in wanted), *kept]


def _initialized_condition(containers: Iterable[ContainerRecord], phase: str) -> dict[str, Any]:
    pending = [
        c.name
        for c in containers
        if (c.role is ContainerRole.INIT and not _init_done(c))
        or (c.role is ContainerRole.SIDECAR and _still_coming_up(c))
    ]
    if not pending or phase == "Succeeded":
        return _condition("Initialized", met=True, reason="PodCompleted" if phase == "Succeeded" else None)
    message = f"containers with incomplete status: [{' '.join(pending)}]"
    return _condition("Initialized", met=False, reason="ContainersNotInitialized", message=message)


def _ready(
    pod: Mapping[str, Any],
    containers: Sequence[ContainerRecord],
    former: Mapping[str, Mapping[str, Any]],
    phase: str,
) -> list[dict[str, Any]]:
    if phase in ("Succeeded", "Failed"):
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        return [_condition(kind, met=False, reason=reason) for kind in ("Ready", "ContainersReady")]
    unready = [c.name for c in containers if c.role is not ContainerRole.INIT and not c.ready]
    message = f"containers with unready status: [{' '.join(unready)}]" if unready else None
    why = "ContainersNotReady" if unready else None
    ready = _condition("Ready", met=not unready, reason=why, message=message)
    gates = [g["conditionType"] for g in pod["spec"].get("readinessGates") or []]
    closed = [gate for gate in gates if former.get(gate, {}).get("status") != "True"]
    if closed and not unready:
        text = f'corresponding condition of pod readiness gate "{closed[0]}" does not exist or is not True.'
        ready = _condition("Ready", met=False, reason="ReadinessGatesNotReady", message=text)
    return [ready, _condition("ContainersReady", met=not unready, reason=why, message=message)]


def _condition(kind: str, met: bool, *, reason: str | None = None, message: str | None = None) -> dict[str, Any]:  # noqa: FBT001
    value: dict[str, Any] = {"type": kind, "status": "True" if met else "False"}
    return value | {k: v for k, v in (("reason", reason), ("message", message)) if v}


def _add_time(condition: dict[str, Any], former: Mapping[str, Any] | None, now: datetime) -> dict[str, Any]:
    if former and former.get("status") == condition["status"]:
        return condition | {"lastTransitionTime": former.get("lastTransitionTime") or clock.timestamp(now)}
    return condition | {"lastTransitionTime": clock.timestamp(now)}

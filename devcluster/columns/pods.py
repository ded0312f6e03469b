"""The columns of pods: status, ready containers and restarts, computed from the container statuses."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from devcluster.columns.base import AGE, NAME, NONE, Column, age, text
from devcluster.formats.objects import Object, condition, is_terminal, is_terminating, phase, spec, status

_Status = dict[str, Any]


@dataclass(slots=True)
class _Restarts:
    count: int = 0
    last: str = ""

    def add(self, container: _Status) -> None:
        self.count += container.get("restartCount", 0)
        finished = (container.get("lastState") or {}).get("terminated", {}).get("finishedAt") or ""
        # Timestamps of one format sort in the order of their times.
        self.last = max(self.last, finished)


@dataclass(slots=True)
class _Summary:
    """The status of a pod in the form that its columns show."""

    reason: str
    restarts: _Restarts
    ready: int = 0
    initializing: bool = False


def summary(pod: Object) -> _Summary:
    """Summarize a pod as printPod of kube-apiserver does."""
    found = _Summary(_own_reason(pod), _Restarts())
    sidecars = _sidecars(pod)
    sidecar_restarts = _init_containers(pod, found, sidecars)
    if not found.initializing or _holds(pod, "Initialized"):
        # The restarts of init containers count only while they run.
        found.restarts = sidecar_restarts
        _main_containers(pod, found)
    if is_terminating(pod) and status(pod).get("reason") == "NodeLost":
        found.reason = "Unknown"
    elif is_terminating(pod) and not is_terminal(pod):
        found.reason = "Terminating"
    return found


def _own_reason(pod: Object) -> str:
    if (condition(pod, "PodScheduled") or {}).get("reason") == "SchedulingGated":
        return "SchedulingGated"
    return str(status(pod).get("reason") or phase(pod))


def _sidecars(pod: Object) -> set[str]:
    return {item["name"] for item in spec(pod).get("initContainers") or [] if item.get("restartPolicy") == "Always"}


def _holds(pod: Object, kind: str) -> bool:
    return (condition(pod, kind) or {}).get("status") == "True"


def _init_containers(pod: Object, found: _Summary, sidecars: set[str]) -> _Restarts:
    """Add the init containers up to the first one that is not done, and return the restarts of sidecars among them."""
    sidecar_restarts = _Restarts()
    count = len(spec(pod).get("initContainers") or [])
    for index, container in enumerate(status(pod).get("initContainerStatuses") or []):
        found.restarts.add(container)
        is_sidecar = container["name"] in sidecars
        if is_sidecar:
            sidecar_restarts.add(container)
        state = container.get("state") or {}
        if (state.get("terminated") or {}).get("exitCode") == 0:
            continue
        if is_sidecar and container.get("started"):
            found.ready += bool(container.get("ready"))
            continue
        found.reason = _init_reason(state, index, count)
        found.initializing = True
        break
    return sidecar_restarts


def _init_reason(state: _Status, index: int, count: int) -> str:
    if state.get("terminated"):
        return f"Init:{_end_of(state['terminated'])}"
    waiting = (state.get("waiting") or {}).get("reason", "")
    if waiting and waiting != "PodInitializing":
        return f"Init:{waiting}"
    return f"Init:{index}/{count}"


def _end_of(terminated: _Status) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    signal = terminated.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{terminated.get('exitCode', 0)}"


def _main_containers(pod: Object, found: _Summary) -> None:
    running = False
    # In reverse order, so that the reason of the first container is the one that remains.
    for container in reversed(status(pod).get("containerStatuses") or []):
        found.restarts.add(container)
        state = container.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            found.reason = state["waiting"]["reason"]
        elif state.get("terminated"):
            found.reason = _end_of(state["terminated"])
        elif container.get("ready") and "running" in state:
            running = True
            found.ready += 1
    # A container that has completed does not complete the pod while another one runs.
    if found.reason == "Completed" and running:
        found.reason = "Running" if _holds(pod, "Ready") else "NotReady"


def _ready(pod: Object) -> str:
    return f"{summary(pod).ready}/{len(spec(pod).get('containers') or []) + len(_sidecars(pod))}"


def _restarts(pod: Object, now: datetime) -> str:
    restarts = summary(pod).restarts
    if restarts.count and restarts.last:
        return f"{restarts.count} ({age(restarts.last, now)} ago)"
    return str(restarts.count)


def _readiness_gates(pod: Object) -> str:
    gates = spec(pod).get("readinessGates") or []
    return f"{sum(_holds(pod, gate['conditionType']) for gate in gates)}/{len(gates)}" if gates else NONE


COLUMNS = (
    NAME,
    Column("Ready", text(_ready)),
    Column("Status", text(lambda pod: summary(pod).reason)),
    Column("Restarts", _restarts),
    AGE,
    Column("IP", text(lambda pod: status(pod).get("podIP") or NONE), wide=True),
    Column("Node", text(lambda pod: spec(pod).get("nodeName") or NONE), wide=True),
    Column("Nominated Node", text(lambda pod: status(pod).get("nominatedNodeName") or NONE), wide=True),
    Column("Readiness Gates", text(_readiness_gates), wide=True),
)

"""The state of a pod when an agent starts: new pods, and pods that a former agent was running. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from devcluster.node.containers.record import ContainerRecord
from devcluster.node.containers.restarts import ContainerRole, restarts, role_of

SHUTDOWN = "Pod was terminated in response to imminent node shutdown."
# The status that a kubelet reports for containers that it cannot find.
LOST = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
}


def initial_records(pod: Mapping[str, Any]) -> list[ContainerRecord]:
    """Return the container records, init containers first, with the states that the API has already."""
    status, spec = pod.get("status") or {}, pod["spec"]
    known = {
        entry["name"]: entry
        for field in ("initContainerStatuses", "containerStatuses")
        for entry in status.get(field) or []
    }
    inits = spec.get("initContainers") or []
    waiting = "PodInitializing" if inits else "ContainerCreating"
    records = [_record(c, role_of(c, is_init=True), known.get(c["name"]), "PodInitializing") for c in inits]
    return records + [_record(c, ContainerRole.MAIN, known.get(c["name"]), waiting) for c in spec["containers"]]


def _record(
    spec: Mapping[str, Any], role: ContainerRole, known: Mapping[str, Any] | None, waiting: str
) -> ContainerRecord:
    record = ContainerRecord(spec["name"], spec["image"], role, spec, {"waiting": {"reason": waiting}})
    if known:
        record.state = dict(known.get("state") or record.state)
        record.last_state = dict(known.get("lastState") or {})
        record.restart_count = known.get("restartCount", 0)
        record.container_id = known.get("containerID") or ""
    return record


def recover_records(
    pod: Mapping[str, Any], records: Sequence[ContainerRecord]
) -> tuple[tuple[str, str] | None, tuple[str, str] | None]:
    """Update the records of a pod whose processes ended with the former agent.

    Containers that were running become terminated, and those that may restart become waiting.

    Returns:
        Failure and disruption of the pod, each as reason and message, or None twice if the pod may go on.
    """
    policy = pod["spec"].get("restartPolicy", "Always")
    begun = any(record.container_id for record in records)
    if not begun:
        return None, None
    for record in records:
        if record.running:
            started = record.state["running"].get("startedAt")
            # The time of the end is unknown.
            record.state = {"terminated": LOST | {"startedAt": started, "finishedAt": started}}
    if policy == "Never" or pod["metadata"].get("deletionTimestamp"):
        _close(records)
        return ("Terminated", SHUTDOWN), ("TerminationByKubelet", SHUTDOWN)
    for record in records:
        _prepare_again(record, policy)
    return None, None


def _close(records: Sequence[ContainerRecord]) -> None:
    for record in records:
        if record.exit_code is None:
            record.state = {"terminated": dict(LOST)}


def _prepare_again(record: ContainerRecord, policy: str) -> None:
    """Prepare a container for a new sandbox: init containers run again, main containers if their policy says so."""
    if record.exit_code is None:
        return
    if record.role is ContainerRole.MAIN and not restarts(record.spec, record.role, policy, record.exit_code):
        return
    record.last_state = record.state
    record.restart_count += 1
    record.state = {
        "waiting": {"reason": "ContainerCreating" if record.role is ContainerRole.MAIN else "PodInitializing"}
    }

"""Finds the pending reason of a pod: a code of jobgate and the message of the cluster."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from app.domain.errors import shorten_list
from app.domain.kubernetes.objects import ContainerStatus, Event, ObjectCondition, Pod
from app.domain.manifests.gangs import group_of
from app.domain.queueing.requests import QUEUE_NAME
from app.domain.queueing.workload import GATES, SUSPENDING_PARENT
from app.domain.status.observed import PendingReason
from app.domain.status.pods.containers import (
    default_container,
    ended_at,
    exit_code,
    init_statuses,
    last_end,
    main_statuses,
)
from app.domain.status.pods.main_container import still_running
from app.domain.vocabulary import PendingCode

# Reasons of a waiting container that name a cause.
_FAULTS: Final[Mapping[str, PendingCode]] = {
    "ErrImagePull": PendingCode.IMAGE_PULL,
    "ImagePullBackOff": PendingCode.IMAGE_PULL,
    "ErrImageNeverPull": PendingCode.IMAGE_PULL,
    "ImageInspectError": PendingCode.IMAGE_PULL,
    "RegistryUnavailable": PendingCode.IMAGE_PULL,
    "SignatureValidationFailed": PendingCode.IMAGE_PULL,
    "InvalidImageName": PendingCode.INVALID_IMAGE_NAME,
    "CreateContainerConfigError": PendingCode.CONTAINER_CONFIG,
    "CreateContainerError": PendingCode.CONTAINER_START,
    "RunContainerError": PendingCode.CONTAINER_START,
    "StartError": PendingCode.CONTAINER_START,
    "PreStartHookError": PendingCode.CONTAINER_START,
    "PostStartHookError": PendingCode.CONTAINER_START,
    "CreatePodSandboxError": PendingCode.SANDBOX,
    "CrashLoopBackOff": PendingCode.CRASH_LOOP,
}
_EVENTS: Final[Mapping[str, PendingCode]] = {
    "FailedScheduling": PendingCode.UNSCHEDULABLE,
    "FailedMount": PendingCode.VOLUME,
    "FailedAttachVolume": PendingCode.VOLUME,
    "FailedMapVolume": PendingCode.VOLUME,
    "FailedCreatePodSandBox": PendingCode.SANDBOX,
    "FailedPodSandBoxStatus": PendingCode.SANDBOX,
    "NetworkNotReady": PendingCode.SANDBOX,
    "FailedCreatePodContainer": PendingCode.CONTAINER_START,
    "FailedPostStartHook": PendingCode.CONTAINER_START,
    "ErrImageNeverPull": PendingCode.IMAGE_PULL,
    "InspectFailed": PendingCode.INVALID_IMAGE_NAME,
    "NodeNotReady": PendingCode.NOT_READY_NODE,
    "Pulling": PendingCode.CONTAINER_CREATING,
}
_LISTED_GATES: Final = 3  # in one message
# Kueue gates the pods of a job without a Workload one by one, and then a job may hold quota for a part of its pods.
_CAPTURED: Final = (
    ": Kueue queues this pod by itself. For a queue of the whole job, turn JOBGATE_QUEUES on, and name a queue in the "
    "label kueue.x-k8s.io/queue-name of the manifest. A job that has run gets its queue after a pause"
)
# Kueue chooses the queue of a pod when it is created, and never again.
_UNNAMED_QUEUE: Final = (
    ", and this one is in no queue. Make the LocalQueue default in the namespace, and delete the pod: another one "
    "replaces it"
)
_NAMED_QUEUE: Final = ", and admits this one when the LocalQueue {} has quota for it"
# The kubelet uses the reasons Failed and BackOff for many causes. These words of the message identify the cause.
# The first match counts, so the most general words come last.
_MESSAGE_WORDS: Final = (
    ("pull", PendingCode.IMAGE_PULL),
    ("back-off restarting", PendingCode.CRASH_LOOP),
    ("invalidimagename", PendingCode.INVALID_IMAGE_NAME),
    ("not found", PendingCode.CONTAINER_CONFIG),
    ("couldn't find key", PendingCode.CONTAINER_CONFIG),
    ("error", PendingCode.CONTAINER_START),
)
# Events of progress: an earlier Event about a problem no longer matters.
_PROGRESS: Final = frozenset({"Scheduled", "Pulled", "Created", "Started", "SuccessfulAttachVolume", "AddedInterface"})


def diagnose(pod: Pod) -> PendingReason | None:
    """Return the pending reason in the status of a pod; None if nothing delays the pod."""
    scheduled = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
    if not pod.spec.node_name:
        return _unbound(pod, scheduled)
    since = scheduled.last_transition_time if scheduled and scheduled.status == "True" else None
    return _bound(pod, since or pod.metadata.creation_timestamp)


def diagnose_started(pod: Pod) -> PendingReason | None:
    """Return the fault that keeps a container of a started pod from running again; None if there is none.

    A pod stays started while the kubelet restarts its containers in place: a sidecar, or a container with
    `restartPolicyRules` or in a pod that restarts its containers. It also does while some of its containers have ended
    for good and others still run.
    """
    return _fault((*init_statuses(pod), *main_statuses(pod)), pod.metadata.creation_timestamp) or _diagnose_outlived(
        pod
    )


def _diagnose_outlived(pod: Pod) -> PendingReason | None:
    """Return that a container has ended, and others still run: the default container, or one that failed.

    A container beside it that has succeeded is done with its part, such as a set-up.
    """
    running, shown = still_running(pod), default_container(pod)
    ended = [
        status for status in main_statuses(pod) if status.name not in running and status.state.terminated is not None
    ]
    told = [status for status in ended if status.name == shown or exit_code(status)]
    if not running or not told or pod.metadata.deletion_timestamp is not None:
        return None
    named = min(told, key=lambda status: status.name != shown)
    at = ended_at(named)
    when = f" at {at.isoformat(timespec='seconds')}" if at is not None else ""
    others = f"{', '.join(running)} still {'runs' if len(running) == 1 else 'run'}"
    message = f"{named.name} exited with {exit_code(named)}{when}; {others}"
    return PendingReason(code=PendingCode.CONTAINER_ENDED, message=message, since=at)


def diagnose_lost(pod: Pod) -> PendingReason:
    """Return the fault of a pod whose node does not answer. The cluster marks such a pod as not ready."""
    ready = next((c for c in pod.status.conditions if c.type == "Ready" and c.status != "True"), None)
    return PendingReason(
        code=PendingCode.NOT_READY_NODE,
        message=f"node {pod.spec.node_name} does not answer" if pod.spec.node_name else "its node does not answer",
        since=ready.last_transition_time if ready is not None else None,
    )


def diagnose_events(events: Sequence[Event]) -> PendingReason | None:
    """Return the pending reason in the newest Events of a pod; None if they report progress or nothing known."""
    # The API server returns Events in no useful order.
    dated = [(event.last_seen, event) for event in events if event.last_seen is not None]
    for at, event in sorted(dated, key=lambda pair: pair[0], reverse=True):
        if event.reason in _PROGRESS:
            return None
        code = _code_of(event)
        if code is not None:
            return PendingReason(code=code, message=event.message, since=event.first_timestamp or at)
    return None


def _unbound(pod: Pod, scheduled: ObjectCondition | None) -> PendingReason:
    # The API server sets the condition of a gated pod without a time.
    since = (scheduled.last_transition_time if scheduled else None) or pod.metadata.creation_timestamp
    if pod.spec.scheduling_gates:
        return PendingReason(code=PendingCode.SCHEDULING_GATED, message=_gates(pod), since=since)
    if scheduled is None or scheduled.status == "True":
        scheduler = pod.spec.scheduler_name or "default-scheduler"
        return PendingReason(
            code=PendingCode.NOT_SCHEDULED,
            message=f'the scheduler "{scheduler}" has not reported a result for the pod yet{_gang(pod)}',
            since=pod.metadata.creation_timestamp,
        )
    code = {
        "Unschedulable": PendingCode.GANG_UNSCHEDULABLE if group_of(pod) else PendingCode.UNSCHEDULABLE,
        "SchedulingGated": PendingCode.SCHEDULING_GATED,
    }.get(scheduled.reason, PendingCode.NOT_SCHEDULED)
    return PendingReason(code=code, message=scheduled.message or scheduled.reason, since=since)


def _gang(pod: Pod) -> str:
    group = group_of(pod)
    return f"; it places all pods of the PodGroup {group} together" if group else ""


def _gates(pod: Pod) -> str:
    has_workload = SUSPENDING_PARENT in pod.metadata.annotations
    gates = {gate.name for gate in pod.spec.scheduling_gates}
    remedy = "" if GATES.isdisjoint(gates) or has_workload else _CAPTURED
    return f"{describe_gates(pod)}{remedy}"


def describe_server_gates(pod: Pod) -> str:
    """Return which scheduling gates keep a server of a SampleSet from the scheduler, and the remedy against Kueue's."""
    gates = describe_gates(pod)
    if GATES.isdisjoint(gate.name for gate in pod.spec.scheduling_gates):
        return gates
    queue = pod.metadata.labels.get(QUEUE_NAME)
    return (
        f"{gates}: Kueue queues each server by itself{_UNNAMED_QUEUE if queue is None else _NAMED_QUEUE.format(queue)}"
    )


def describe_gates(pod: Pod) -> str:
    """Return which scheduling gates keep a pod from the scheduler, and who removes them."""
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    noun = "the scheduling gate" if len(gates) == 1 else "the scheduling gates"
    has_workload = SUSPENDING_PARENT in pod.metadata.annotations
    who = "jobgate removes" if has_workload and GATES.issuperset(gates) else "other clients remove"
    return f"the pod is not scheduled before {who} {noun} {shorten_list(gates, _LISTED_GATES)}"


def _bound(pod: Pod, since: datetime | None) -> PendingReason | None:
    inits = init_statuses(pod)
    statuses = (*inits, *main_statuses(pod))
    # A fault explains the wait better than the progress of the other containers.
    fault = _fault(statuses, since)
    if fault is not None:
        return fault
    # Init containers run one after another, so the first one that is not done is the present one.
    initializing = next((s for s in inits if not _is_done(s)), None)
    if initializing is not None and initializing.state.running is not None:
        message = f'init container "{initializing.name}" is at work'
        return PendingReason(code=PendingCode.INITIALIZING, message=message, since=since)
    waits = [status for status in statuses if status.state.running is None and status.state.terminated is None]
    if waits or not statuses:
        message = waits[0].state.waiting.message if waits and waits[0].state.waiting else ""
        message = message or f"node {pod.spec.node_name} is preparing the containers"
        return PendingReason(code=PendingCode.CONTAINER_CREATING, message=message, since=since)
    return None


def _fault(statuses: Iterable[ContainerStatus], since: datetime | None) -> PendingReason | None:
    """Return the fault of the first container that has one. A container that ran before is at fault since its end."""
    for status in statuses:
        waiting = status.state.waiting
        if waiting is not None and waiting.reason in _FAULTS:
            code = _FAULTS[waiting.reason]
            message = f'container "{status.name}": {waiting.message or waiting.reason}'
            # The kubelet's message contains the name of the pod and the length of the wait, but not the cause.
            if code is PendingCode.CRASH_LOOP and (cause := last_end(status)):
                message = f'container "{status.name}" is restarted again and again: {cause}'
            return PendingReason(code=code, message=message, since=ended_at(status) or since)
    return None


def _is_done(status: ContainerStatus) -> bool:
    """Return whether an init container has succeeded, or a sidecar has started."""
    terminated = status.state.terminated
    return (terminated is not None and terminated.exit_code == 0) or bool(status.state.running and status.started)


def _code_of(event: Event) -> PendingCode | None:
    if event.reason in _EVENTS:
        return _EVENTS[event.reason]
    if event.reason not in ("Failed", "BackOff"):
        return None
    message = event.message.lower()
    return next((code for word, code in _MESSAGE_WORDS if word in message), None)

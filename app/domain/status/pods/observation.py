"""Turns a raw pod into an observation.

The phases of the five systems overlap. These do not:

    Creating            the pod has no node
    Pending             the pod has a node, and a container has not started
    Running             every container has started, and the pod has not ended
    Succeeded, Failed   the kubelet reported the end, which is final
    Unknown             the pod has not ended, and its node does not answer

Sidecars (init containers that always restart) have no influence on the phase. In a pod with a main container, the end
of that one is the end of the pod, although others still run.
"""

from collections.abc import Container as Collection
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata, Pod
from app.domain.kubernetes.topology import UNCONSTRAINED
from app.domain.manifests.gangs import group_of
from app.domain.plan import Rank
from app.domain.queueing.workload import GATES, POD_FINALIZER, SUSPENDING_PARENT
from app.domain.status.observed import ObservedContainer, ObservedPod, PendingReason
from app.domain.status.pods.containers import (
    exit_code,
    exit_message,
    first_to_fail,
    has_started,
    observed_containers,
    restarts_in_place,
    sidecars,
)
from app.domain.status.pods.diagnosis import diagnose, diagnose_lost, diagnose_started
from app.domain.status.pods.disruptions import disruption_of
from app.domain.status.pods.main_container import ended_main, still_running
from app.domain.vocabulary import ReplicaPhase

_FINAL: Final = {"Succeeded": ReplicaPhase.SUCCEEDED, "Failed": ReplicaPhase.FAILED}


def observe_pod(pod: Pod, *, lost_nodes: Collection[str]) -> ObservedPod:
    """Return the observation of a pod. A pod with damaged labels gets a key that no plan contains."""
    metadata, status = pod.metadata, pod.status
    containers = observed_containers(pod)
    main, has_ended = ended_main(pod), _has_ended(pod)
    # A pod that is being deleted ends soon. Until then, its processes run.
    lingering = main is not None and not has_ended and metadata.deletion_timestamp is None and bool(still_running(pod))
    if main is not None and (has_ended or lingering):
        phase = ReplicaPhase.FAILED if exit_code(main) else ReplicaPhase.SUCCEEDED
        own = [container for container in containers if container.name == main.name]
    else:
        phase = _phase(pod, lost_nodes)
        # The kubelet stops sidecars with a signal after the other containers, so their exit codes mean nothing.
        aside = sidecars(pod)
        own = [container for container in containers if container.name not in aside]
    ended = has_ended or lingering
    failed = first_to_fail(own)
    containers = tuple(
        replace(container, culprit=True) if container is failed else container for container in containers
    )
    reason, message = _reason_and_message(pod, phase, own)
    key, attempt = labelled_attempt(metadata)
    return ObservedPod(
        name=metadata.name,
        uid=metadata.uid,
        key=key,
        attempt=attempt,
        phase=phase,
        ended=ended,
        lingering=lingering,
        version=metadata.version,
        node=pod.spec.node_name or None,
        pod_ip=status.pod_ip or None,
        started_at=min((c.started_at for c in own if not c.init and c.started_at), default=None),
        finished_at=max((c.finished_at for c in own if c.finished_at), default=None) if ended else None,
        exit_code=_exit_code(own),
        reason=reason,
        message=message,
        disruption=None if phase is ReplicaPhase.SUCCEEDED else disruption_of(pod),
        deletion_deadline=metadata.deletion_timestamp,
        deleted_at=metadata.deleted_at,
        held=labels.EVIDENCE_FINALIZER in metadata.finalizers,
        kept_by=foreign_finalizers(metadata),
        created_at=metadata.creation_timestamp,
        pending=_pending(pod, phase),
        containers=containers,
        restarts_in_place=restarts_in_place(pod),
        group=group_of(pod),
        gated=is_gated(pod),
        captured=is_captured(pod),
        wanted_nodes=_wanted_nodes(pod),
    )


def _pending(pod: Pod, phase: ReplicaPhase) -> PendingReason | None:
    if phase is ReplicaPhase.RUNNING:
        return diagnose_started(pod)
    if phase is ReplicaPhase.UNKNOWN:
        return diagnose_lost(pod)
    return diagnose(pod) if phase in (ReplicaPhase.CREATING, ReplicaPhase.PENDING) else None


def is_gated(pod: Pod) -> bool:
    """Return whether the pod has a scheduling gate or the finalizer of Kueue."""
    gates = {gate.name for gate in pod.spec.scheduling_gates}
    return not gates.isdisjoint(GATES) or POD_FINALIZER in pod.metadata.finalizers


def is_captured(pod: Pod) -> bool:
    """Return whether Kueue queues the pod by itself: no other object accounts for it."""
    return is_gated(pod) and SUSPENDING_PARENT not in pod.metadata.annotations


def _wanted_nodes(pod: Pod) -> Mapping[str, str]:
    waits = not pod.spec.node_name and UNCONSTRAINED in pod.metadata.annotations
    return pod.spec.node_selector if waits else {}


def foreign_finalizers(metadata: Metadata) -> tuple[str, ...]:
    """Return the finalizers that are not jobgate's."""
    return tuple(finalizer for finalizer in metadata.finalizers if finalizer != labels.EVIDENCE_FINALIZER)


def _phase(pod: Pod, lost_nodes: Collection[str]) -> ReplicaPhase:
    status, node = pod.status, pod.spec.node_name
    if status.phase in _FINAL:
        return _FINAL[status.phase]
    if status.phase == "Unknown" or status.reason == "NodeLost" or (node and node in lost_nodes):
        return ReplicaPhase.UNKNOWN
    if not node:
        return ReplicaPhase.CREATING
    # A container without a status has not started.
    known = {container.name: container for container in status.container_statuses}
    started = all(name in known and has_started(known[name]) for name in (c.name for c in pod.spec.containers))
    return ReplicaPhase.RUNNING if started else ReplicaPhase.PENDING


def _has_ended(pod: Pod) -> bool:
    """Return whether no container of the pod can run any more, as far as the cluster knows.

    A pod being deleted has a grace period of 0 if the kubelet has confirmed the end, if no kubelet ever had the pod, or
    if a client forced the deletion. In each case, no further status follows.
    """
    if pod.status.phase in _FINAL:
        return True
    if pod.metadata.deletion_timestamp is None:
        return False
    if not pod.spec.node_name or pod.metadata.deletion_grace_period_seconds == 0:
        return True
    # The kubelet starts no container of a pod that is being deleted, so the containers that have ended stay ended.
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    started = [container.state for container in statuses if has_started(container)]
    return bool(started) and all(state.terminated is not None for state in started)


def _exit_code(own: list[ObservedContainer]) -> int | None:
    """Return the exit code of the container that failed first, or 0 if all but the init containers succeeded."""
    failed = first_to_fail(own)
    if failed is not None:
        return failed.exit_code
    proper = [container for container in own if not container.init]
    return 0 if proper and all(container.state == "terminated" for container in proper) else None


def _reason_and_message(pod: Pod, phase: ReplicaPhase, own: list[ObservedContainer]) -> tuple[str | None, str | None]:
    """Return the reason and message of the end of a pod, from its status or else from its failed container."""
    status = pod.status
    failed = first_to_fail(own) if phase is not ReplicaPhase.SUCCEEDED else None
    if status.reason or failed is None:
        return status.reason or None, status.message or None
    if failed.message:
        return failed.reason, failed.message
    return failed.reason, exit_message(failed)


def labelled_attempt(metadata: Metadata) -> tuple[Rank, int]:
    """Return the replica and the attempt that the labels of a pod name. Any client can write them."""
    found = metadata.labels
    key = Rank(found.get(labels.TASK, ""), _number(found.get(labels.TASK_RANK, "")))
    return key, _number(found.get(labels.ATTEMPT, ""))


def _number(text: str) -> int:
    # Any client can change labels. int() accepts other digits than 0 to 9, and raises for a text of thousands of
    # digits.
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else -1

"""Replaces pods that wait for nodes which they cannot get any more."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.domain.plan import Rank
from app.domain.queueing.admission import Queueing
from app.domain.reconcile.actions import DeletePod
from app.domain.reconcile.lifecycle import pod_of
from app.domain.reconcile.stepping import Step
from app.domain.status.observed import ObservedPod
from app.domain.vocabulary import StopReason


def live_pod(step: Step, pods: Sequence[ObservedPod]) -> ObservedPod | None:
    """Return the pod of the present attempt, unless it has ended."""
    pod = pod_of(step.replica.attempt, pods)
    return None if pod is None or pod.ended else pod


def stop_unplaced(step: Step, pod: ObservedPod) -> None:
    """Stop a pod that has no node. Another one replaces it."""
    attempt = step.replica.attempt
    if pod.node is not None or pod.deleting or attempt.stopping is not None:
        return
    step.replica = replace(step.replica, attempt=replace(attempt, stopping=StopReason.UNPLACEABLE))
    step.actions.append(DeletePod(name=pod.name, uid=pod.uid))


def replace_misplaced(record: Queueing, steps: Mapping[Rank, Step], pods: Mapping[Rank, Sequence[ObservedPod]]) -> None:
    """Stop pods that wait for other nodes than those that the present topology of their job assigns to them.

    Those that Kueue has captured wait for an admission that they do not need.
    """
    for key, step in steps.items():
        pod = live_pod(step, pods.get(key, ()))
        admission = record.admission_of(key)
        if pod is None or admission is None:
            continue
        if pod.captured or (pod.wanted_nodes and not admission.domain_of(key.rank).items() <= pod.wanted_nodes.items()):
            stop_unplaced(step, pod)

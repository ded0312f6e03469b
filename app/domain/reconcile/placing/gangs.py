"""Which new pods of a job the scheduler places together, and which ones wait until it has.

The members of a gang are the replicas that the job needs to work. Their pods name the PodGroup of the job. Further
replicas of an elastic job are created once all members have nodes: before, they would take the room that this gang or
another one needs, and could not work.

A scheduler counts the live pods of a PodGroup only. Once a member has succeeded or failed finally, or runs outside the
PodGroup, no gang can be placed any more: a pod that names it and has no node waits for ever. So new pods are placed one
by one, and those without a node are replaced. The same holds for a PodGroup that another client deletes while members
run: they keep it, so no other one of its name can be created.

Pods without a node do not show that another client has deleted or edited their PodGroup, so it is read now and then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.domain.manifests.gangs import group_name, is_own_group
from app.domain.plan import JobPlan, Rank
from app.domain.reconcile.actions import Action, CheckGroup, CreatePod
from app.domain.reconcile.placing.misplaced import live_pod, stop_unplaced
from app.domain.reconcile.stepping import Step
from app.domain.status.observed import ObservedPod


def place_gang(
    plan: JobPlan,
    steps: Mapping[Rank, Step],
    pods: Mapping[Rank, Sequence[ObservedPod]],
    *,
    deleting: bool,
) -> None:
    """Make the pods that the steps create members of the job's PodGroup, as far as its scheduler can still place it.

    Replicas beyond the gang get no pod before the gang has its nodes. Pods of a PodGroup that cannot be placed any more
    are stopped, so that pods without one replace them. `deleting` says that the PodGroup is being deleted, which ends
    when no pod names it: if none has a node, all are stopped, and the gang gets another PodGroup.
    """
    group = group_name(plan)
    if plan.gang is None or not group:
        return
    members = {key: live_pod(steps[key], pods.get(key, ())) for key in plan.gang.members}
    settled = any(steps[key].replica.settled for key in members)
    kept = any(pod is not None and pod.node is not None and not pod.deleting for pod in members.values())
    if settled or (deleting and kept) or any(pod is not None and pod.group != group for pod in members.values()):
        _stop_members(plan, steps, pods)
        return
    if deleting:
        _stop_members(plan, steps, pods)
    is_placed = all(pod is not None and pod.node is not None for pod in members.values())
    if any(pod is not None and pod.node is None for pod in members.values()) and not deleting:
        steps[next(iter(members))].actions.append(CheckGroup())
    for key, step in steps.items():
        if key in members:
            step.actions = [_joining(action) for action in step.actions]
        elif not is_placed:
            step.waits_for_gang = any(isinstance(action, CreatePod) for action in step.actions)
            step.actions = [action for action in step.actions if not isinstance(action, CreatePod)]


def _stop_members(plan: JobPlan, steps: Mapping[Rank, Step], pods: Mapping[Rank, Sequence[ObservedPod]]) -> None:
    """Stop the pods that name a PodGroup of the job and have no node."""
    for key in plan.replicas:
        pod = live_pod(steps[key], pods.get(key, ()))
        if pod is not None and is_own_group(plan, pod.group):
            stop_unplaced(steps[key], pod)


def _joining(action: Action) -> Action:
    return replace(action, in_gang=True) if isinstance(action, CreatePod) else action

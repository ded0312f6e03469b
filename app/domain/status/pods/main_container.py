"""The main container of a pod, whose end is the end of the replica, and containers that outlive others."""

from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import ContainerStatus, Pod, RestartRule
from app.domain.manifests.workload import main_container_of
from app.domain.plan import JobPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMain:
    """The main container of the pods of a task, and the containers of their template."""

    name: str | None
    containers: Collection[str]


def planned_main(plan: JobPlan, task: str) -> PlannedMain | None:
    """Return the main container of a task; None if the plan does not have the task."""
    if task not in plan.task:
        return None
    template = plan.task[task].render(0).template
    containers = frozenset(container["name"] for container in template["spec"]["containers"])
    return PlannedMain(name=main_container_of(template, plan.main_container), containers=containers)


def with_main_container(pod: Pod, planned: PlannedMain | None) -> Pod:
    """Return the pod with the annotation that names its main container.

    Every client that may edit pods can remove the annotation or replace it with the name of an injected container. One
    with the name of another container of the template stays: the plan is newer than the pod after an edit.
    """
    named = pod.metadata.annotations.get(labels.MAIN_CONTAINER)
    if planned is None or planned.name is None or named in planned.containers:
        return pod
    if all(container.name != planned.name for container in pod.spec.containers):
        return pod
    annotations = {**pod.metadata.annotations, labels.MAIN_CONTAINER: planned.name}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations))


def main_container(pod: Pod) -> str | None:
    """Return the name of the main container; None if the replica ends with its whole pod.

    The annotation of the pod names it.
    """
    named = pod.metadata.annotations.get(labels.MAIN_CONTAINER)
    return named if any(container.name == named for container in pod.spec.containers) else None


def has_ended_for_good(pod: Pod, status: ContainerStatus) -> bool:
    """Return whether a container that is no init container has ended, and the kubelet does not restart it in place."""
    end = status.state.terminated
    if end is None or pod.metadata.deletion_timestamp is not None:
        return end is not None
    own = next((container for container in pod.spec.containers if container.name == status.name), None)
    if own is not None and any(_applies(rule, end.exit_code) for rule in own.restart_policy_rules):
        return False
    policy = (own.restart_policy if own is not None else "") or pod.spec.restart_policy
    return policy != "Always" and (policy != "OnFailure" or end.exit_code == 0)


def _applies(rule: RestartRule, code: int) -> bool:
    return (code in rule.exit_codes.values) == (rule.exit_codes.operator == "In")


def ended_main(pod: Pod) -> ContainerStatus | None:
    """Return the status of the main container if it has ended for good; None if it has not, or if none is named."""
    name = main_container(pod)
    named = (status for status in pod.status.container_statuses if status.name == name)
    return next((status for status in named if has_ended_for_good(pod, status)), None)


def still_running(pod: Pod) -> list[str]:
    """Return the containers, in the order of the spec, that are neither init containers nor ended for good."""
    ended = {status.name for status in pod.status.container_statuses if has_ended_for_good(pod, status)}
    return [container.name for container in pod.spec.containers if container.name not in ended]

"""The main container of a pod, whose end is the end of the replica, and containers that outlive others."""

from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import ContainerStatus, Pod, RestartRule


def main_container(pod: Pod) -> str | None:
    """Return the name of the main container; None if the replica ends with its whole pod.

    The annotation of the pod names it. A client that changed the annotation to another name has removed it.
    """
    named = pod.metadata.annotations.get(labels.MAIN_CONTAINER)
    return named if any(container.name == named for container in pod.spec.containers) else None


def ended_for_good(pod: Pod, status: ContainerStatus) -> bool:
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
    return next((one for one in pod.status.container_statuses if one.name == name and ended_for_good(pod, one)), None)


def still_running(pod: Pod) -> list[str]:
    """Return the containers, in the order of the spec, that are neither init containers nor ended for good."""
    ended = {status.name for status in pod.status.container_statuses if ended_for_good(pod, status)}
    return [container.name for container in pod.spec.containers if container.name not in ended]

"""The containers of a pod, in the order of its spec.

The kubelet sorts `containerStatuses` by name, so the position of a status in its list means nothing.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from app.domain.kubernetes.objects import Container, ContainerStatus, Pod
from app.domain.status.log_lines import last_line
from app.domain.status.observed import ContainerRestart, ObservedContainer
from app.domain.status.pods.main_container import main_container

# With this annotation a user, or a webhook that injects a sidecar, names the container that `kubectl logs` shows.
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
# Shells and container runtimes report a process that signal n ended with the exit code 128 + n.
_SIGNAL_BASE: Final = 128
# The highest signal of Linux, SIGRTMAX.
_MAX_SIGNAL: Final = 64
# What container runtimes report as the time of something that has not happened.
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def init_statuses(pod: Pod) -> Sequence[ContainerStatus]:
    """Return the statuses of the init containers, sidecars included, in the order of the spec."""
    return _in_order(pod.spec.init_containers, pod.status.init_container_statuses)


def main_statuses(pod: Pod) -> Sequence[ContainerStatus]:
    """Return the statuses of the containers that are not init containers, in the order of the spec."""
    return _in_order(pod.spec.containers, pod.status.container_statuses)


def _in_order(specs: Sequence[Container], statuses: Sequence[ContainerStatus]) -> Sequence[ContainerStatus]:
    if len(statuses) < 2:
        return statuses
    indexes = {container.name: index for index, container in enumerate(specs)}
    return sorted(statuses, key=lambda status: indexes.get(status.name, len(indexes)))


def observed_containers(pod: Pod) -> tuple[ObservedContainer, ...]:
    """Return the containers of the pod: init containers first, each list in the order of the spec."""
    shown = default_container(pod)
    return (
        *(_container(status, init=True, default=status.name == shown) for status in init_statuses(pod)),
        *(_container(status, init=False, default=status.name == shown) for status in main_statuses(pod)),
    )


def default_container(pod: Pod) -> str | None:
    """Return the container whose log is shown unless a client names one: the main container, or else that of kubectl.

    The annotation of kubectl decides if it names a container of the pod, and otherwise the first one of the spec.
    """
    if (main := main_container(pod)) is not None:
        return main
    annotated = pod.metadata.annotations.get(DEFAULT_CONTAINER)
    names = [container.name for container in pod.spec.containers]
    if annotated in names or any(container.name == annotated for container in pod.spec.init_containers):
        return annotated
    return names[0] if names else None


def sidecars(pod: Pod) -> frozenset[str]:
    """Return the names of the init containers that always restart."""
    return frozenset(c.name for c in pod.spec.init_containers if c.restart_policy == "Always")


def first_to_fail(own: Iterable[ObservedContainer]) -> ObservedContainer | None:
    """Return the container that failed first; None if none has failed.

    Kubernetes rounds times to seconds. Of containers that failed in the same second, the default container comes first,
    and then the order of the spec counts. A container without a time, which the kubelet could not find, comes last.
    """
    failed = [container for container in own if container.state == "terminated" and container.exit_code]
    return min(failed, key=lambda container: (container.finished_at or _NEVER, not container.default), default=None)


def has_started(status: ContainerStatus) -> bool:
    """Return whether the container has ever started, which a container that waits for a restart in place has."""
    state = status.state
    return state.running is not None or state.terminated is not None or status.last_state.terminated is not None


def failed_init_container(containers: Sequence[ObservedContainer]) -> ObservedContainer | None:
    """Return the init container that keeps all other containers from starting, because it failed.

    A sidecar fails too when the kubelet stops it, after the failure of another one. It counts while it crashes.
    """
    if any(container.has_run for container in containers if not container.init):
        return None
    failed = [
        container for container in containers if container.init and container.exit_code and container.state != "running"
    ]
    return min(failed, key=lambda container: (not container.culprit, container.finished_at or _NEVER), default=None)


def choose_container(containers: Sequence[ObservedContainer], requested: str | None) -> ObservedContainer | None:
    """Return the requested container; None if there is no such container.

    Without a request, return the init container that kept the others from starting, or else the default container.
    """
    if requested is not None:
        return next((container for container in containers if container.name == requested), None)
    # No container is marked while the default one has no status, and in attempts that an older version stored.
    by_interest = sorted(containers, key=lambda container: (not container.default, container.init))
    return failed_init_container(containers) or next(iter(by_interest), None)


def exit_message(failed: ObservedContainer) -> str:
    """Return the message of a failed container that has left none."""
    code = f"exit code {failed.exit_code}" + (f", signal {failed.signal}" if failed.signal else "")
    return f'container "{failed.name}" failed with {code}'


def restarts_in_place(pod: Pod) -> tuple[ContainerRestart, ...]:
    """Return the last restart in place of each container that the kubelet has restarted."""
    return tuple(
        ContainerRestart(container=status.name, number=status.restart_count, cause=last_end(status))
        for status in (*init_statuses(pod), *main_statuses(pod))
        if status.restart_count
    )


def last_end(status: ContainerStatus) -> str:
    """Return how the container ended last, such as `exit code 1, Error: no such rate`; empty if that is not known."""
    end = status.last_state.terminated or status.state.terminated
    if end is None:
        return ""
    how = f"exit code {end.exit_code}" + (f", {end.reason}" if end.reason else "")
    # A termination message may be the end of a log, whose last line is the cause.
    message = last_line(end.message)
    return how + (f": {message}" if message else "")


def exit_code(status: ContainerStatus) -> int | None:
    """Return the exit code of a container that has ended."""
    return status.state.terminated.exit_code if status.state.terminated is not None else None


def ended_at(status: ContainerStatus) -> datetime | None:
    """Return when the container ended last; None if it never has."""
    end = status.state.terminated or status.last_state.terminated
    return _time(end.finished_at) if end is not None else None


def _container(status: ContainerStatus, *, init: bool, default: bool) -> ObservedContainer:
    state = status.state
    ended = state.terminated or status.last_state.terminated
    # While a container runs, the reason and message of its last end no longer hold.
    explained = state.terminated or (state.waiting if not state.running else None)
    if state.running:
        name, started_at = "running", _time(state.running.started_at)
    else:
        name, started_at = ("terminated" if state.terminated else "waiting"), _time(ended.started_at) if ended else None
    return ObservedContainer(
        name=status.name,
        state=name,
        init=init,
        default=default,
        ready=status.ready,
        image=status.image or None,
        restart_count=status.restart_count,
        exit_code=ended.exit_code if ended else None,
        signal=_signal(ended.exit_code, ended.signal) if ended else None,
        reason=(explained.reason or None) if explained else None,
        message=(explained.message or None) if explained else None,
        started_at=started_at,
        finished_at=_time(ended.finished_at) if ended else None,
    )


def _time(reported: datetime | None) -> datetime | None:
    """Return a time of a container; None if it is the epoch, which a container that never started has as its start."""
    return None if reported is None or reported <= _EPOCH else reported


def _signal(exit_code: int, reported: int | None) -> int | None:
    """Return the signal that ended a container. Most runtimes report it only as an exit code of 128 plus the signal."""
    if reported:
        return reported
    guess = exit_code - _SIGNAL_BASE
    return guess if 0 < guess <= _MAX_SIGNAL else None

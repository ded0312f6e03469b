"""The runs of the containers of a pod whose logs the cluster still has."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from app.domain.kubernetes.objects import ContainerState, ContainerStatus, Pod

_ENDED = frozenset({"Succeeded", "Failed"})
_CLOCKS_DIFFER: Final = timedelta(minutes=1)  # those of a node and of PostgreSQL, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRun:
    """A run of a container.

    Args:
        number: the restart count of the container in this run.
        container_id: identifies the run at its node.
        is_running: whether it has not ended yet, as far as is known.
        is_previous: whether the cluster gives its log as that before the last restart in place.
        is_last: whether no further run can follow, so that a log cannot be mistaken for that of another run.
        started_at: by the clock of the node; None if that is not known.
    """

    container: str
    number: int
    container_id: str
    is_running: bool = False
    is_previous: bool = False
    is_last: bool = False
    started_at: datetime | None = None


def runs_of(pod: Pod) -> Sequence[ContainerRun]:
    """Return the runs whose logs the cluster has: the last two of each container, init containers included."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return [run for status in statuses for run in _runs(status, is_last=pod.status.phase in _ENDED)]


def is_finished(pod: Pod) -> bool:
    """Return whether no container of the pod runs or can run again."""
    return pod.status.phase in _ENDED and not any(run.is_running for run in runs_of(pod))


def kept_since(redacted_at: datetime | None, started_at: datetime | None) -> datetime | None:
    """Return from when on the output of a run, or of a pod, is kept after a redaction of its job; None if all of it is.

    The result is by the clock of a node: what it reports from then on was printed after the redaction.
    """
    if redacted_at is None:
        return None
    after = redacted_at + _CLOCKS_DIFFER
    return after if started_at is None or started_at < after else None


def _started_at(state: ContainerState) -> datetime | None:
    known = state.running or state.terminated
    return None if known is None else known.started_at


def _runs(status: ContainerStatus, *, is_last: bool) -> Iterator[ContainerRun]:
    number, before = status.restart_count, status.last_state.terminated
    id_before = before.container_id if before is not None else ""
    # A container that waits for its restart has the number, and mostly the id, of its last run.
    current = status.container_id or id_before
    ended = status.state.terminated
    is_other = ended is not None and ended.container_id not in {"", current}  # the state is that of the run before
    if current and not is_other and not (status.state.waiting is not None and current != id_before):
        state = status.last_state if status.state.waiting is not None else status.state
        yield ContainerRun(
            container=status.name,
            number=number,
            container_id=current,
            is_running=status.state.running is not None,
            is_last=is_last,
            started_at=_started_at(state),
        )
    if id_before and id_before != current and number > 0:
        yield ContainerRun(
            container=status.name,
            number=number - 1,
            container_id=id_before,
            is_previous=True,
            is_last=is_last,
            started_at=_started_at(status.last_state),
        )

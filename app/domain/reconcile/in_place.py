"""History rows about restarts in place: the kubelet restarts a container, and the attempt of the replica goes on."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from app.domain.plan import Rank
from app.domain.status.log_lines import one_line
from app.domain.status.observed import ContainerRestart, ObservedPod
from app.domain.status.records import HistoryEntry, Replica
from app.domain.vocabulary import JobPhase, Reason


def restart_entries(
    recorded: Mapping[Rank, Replica], pods: Iterable[ObservedPod], phase: JobPhase, now: datetime
) -> list[HistoryEntry]:
    """Return a row for each new restart in place whose number reaches 1, 2, 4, 8 and so on.

    A container that crashes for days would fill the history otherwise. The status has the number of all restarts.
    """
    return [
        _entry(pod, restart, phase, now)
        for pod in pods
        if pod.restarts_in_place
        for restart in _new_restarts(recorded.get(pod.key), pod)
    ]


def _new_restarts(before: Replica | None, pod: ObservedPod) -> list[ContainerRestart]:
    if before is None or before.attempt.pod_uid not in (None, pod.uid) or before.attempt.outcome is not None:
        return []
    known = {container.name: container.restart_count for container in before.attempt.containers}
    return [
        restart
        for restart in pod.restarts_in_place
        # The number has more binary digits if a power of two lies between.
        if restart.number.bit_length() > known.get(restart.container, 0).bit_length()
    ]


def _entry(pod: ObservedPod, restart: ContainerRestart, phase: JobPhase, now: datetime) -> HistoryEntry:
    cause = f" after {restart.cause}" if restart.cause else ""
    message = f'{pod.key}: the kubelet restarted container "{restart.container}" in place{cause}'
    return HistoryEntry(
        at=now,
        phase=phase,
        reason=Reason.CONTAINER_RESTARTED,
        message=f"{one_line(message)} (restart {restart.number})",
        key=pod.key,
        attempt=pod.attempt,
    )

"""What the queue of a job means for a reconcile: whether its replicas may run.

    no room             nothing starts: the job is Queued, and has no Workload
    no admission        nothing starts: the job is Queued
    admitted            the replicas run that its Workloads are for; those of a further Workload wait for its admission
    evicted             pods are stopped; when none is left, the admission and its quota are given back
    deactivated         the same, and the job is paused until the Workload is active again

The eviction of a further Workload stops only its own replicas. That of the first one stops all, and the job is queued
again as one Workload.

The admission is recorded before the first pod is created, and forgotten only when no pod is left. While Kueue cannot be
reached, what is recorded holds: admitted jobs run on, an eviction that has begun goes on, others wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.domain.plan import Rank
from app.domain.queueing.admission import Admitted, Queueing
from app.domain.queueing.requests import DEFAULT_QUEUE, requested_queue
from app.domain.queueing.workload_status import DEACTIVATED, Evicted, Unadmitted, Verdict
from app.domain.reconcile.queues.admissions import (
    MOST_FURTHER,
    admit,
    are_gone,
    creating,
    ended_ranks,
    first_workload,
    is_over,
    is_without_workload,
    judge,
    keeps_running,
    next_workloads,
    wait_after,
)
from app.domain.reconcile.resizing import Members, has_left
from app.domain.reconcile.values import Inputs
from app.domain.status.observed import KueueState
from app.domain.status.records import JobStatus, Replica
from app.domain.vocabulary import JobPhase, PendingCode, StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """What the queue of a job permits in one reconcile.

    `record` is what is stored of the queue; None for a job without one. `wait` keeps replicas from starting, `eviction`
    stops them. `paused` says that the job is paused because its Workload is deactivated, or was until now.
    `further_wait` says why replicas of an admitted job wait that no admission covers. `further_evictions` are those of
    its further Workloads, by their numbers.
    """

    record: Queueing | None = None
    wait: Unadmitted | None = None
    eviction: Evicted | None = None
    paused: bool = False
    further_wait: Unadmitted | None = None
    further_evictions: Mapping[int, Evicted] = field(default_factory=dict)

    def covers(self, key: Rank) -> bool:
        """Return whether the replica may run: an admission covers certain replicas."""
        return self.record is None or self.record.admission_of(key) is not None

    def evicts_alone(self, key: Rank) -> bool:
        """Return whether the replica is stopped because the quota of a further Workload is required."""
        known = self.record.further if self.record is not None and self.further_evictions else ()
        return any(item.number in self.further_evictions and item.is_for(key) for item in known)


def derive_permit(inputs: Inputs) -> Permit:
    """Return what the queue of the job permits, from its record and its Workload."""
    status, known = inputs.recorded.status, inputs.recorded.status.queueing
    if inputs.intent.cancel or inputs.intent.remove:
        return Permit(record=known)
    if status.phase.is_terminal:
        return _ended_permit(inputs, known)
    if inputs.plan.paused:
        # The quota is given back with the Workload. The queue of a resumed job is determined again.
        if known is None or is_without_workload(inputs.observed.queue):
            return Permit()
        return Permit(record=replace(known, deactivated=False))
    if inputs.room_wait is not None:
        # Before the queue, so that a job without room holds no quota.
        return Permit(wait=Unadmitted(code=PendingCode.WAITING_FOR_POD_LIMIT, message=inputs.room_wait.message))
    if known is None:
        return _first_permit(inputs)
    return _next_permit(inputs, known)


def _ended_permit(inputs: Inputs, known: Queueing | None) -> Permit:
    """Return the permit of an ended job. The replicas that its clean-up policy keeps need their admission."""
    queue = inputs.observed.queue
    keeps = keeps_running(inputs.recorded.replicas.values())
    if known is None or known.admission is None or not keeps or queue.state is not KueueState.LISTED:
        return Permit(record=known)
    verdict = judge(known.first, queue.workload, known.name, ended_ranks(inputs))
    if isinstance(verdict, Evicted):
        return _evicted_permit(inputs, known, verdict)
    return replace(_admitted_permit(inputs, known), further_wait=None)


def _first_permit(inputs: Inputs) -> Permit:
    """Determine the queue of a job before its pods are created, or again after a pause."""
    queue = inputs.observed.queue
    requested = requested_queue(inputs.plan, queue.local_queues)
    if not _is_unstarted(inputs):
        return Permit()
    if queue.state is KueueState.ABSENT:
        waits = requested is not None and queue.required
        return _without_kueue(f"the cluster does not serve Kueue: {queue.error}") if waits else Permit()
    if queue.state is KueueState.UNKNOWN:
        return _without_kueue(f"jobgate has not listed the queues of the cluster yet: {queue.error}")
    if queue.state is KueueState.DENIED:
        # A job that names no queue cannot depend on a right that the administrator has not given.
        return _without_kueue(f"jobgate may not read Kueue's objects: {queue.error}") if requested else Permit()
    name = requested or (DEFAULT_QUEUE if DEFAULT_QUEUE in queue.local_queues else None)
    return Permit() if name is None else _next_permit(inputs, Queueing(name=name, queued_at=inputs.now))


def _is_unstarted(inputs: Inputs) -> bool:
    """Return whether the job has no pods, or none since its last pause."""
    if not inputs.recorded.had_pods:
        return True
    runs = any(not has_left(replica) for replica in inputs.recorded.replicas.values() if replica.attempt.pod_uid)
    status = inputs.recorded.status
    # Since a resume, Kueue could not be read.
    waits = (status.phase, status.reason) == (JobPhase.QUEUED, PendingCode.WAITING_FOR_KUEUE)
    return not runs and (waits or status.phase in (JobPhase.PAUSED, JobPhase.RESUMING))


def _without_kueue(message: str) -> Permit:
    return Permit(wait=Unadmitted(code=PendingCode.WAITING_FOR_KUEUE, message=message.rstrip(": ")))


def _next_permit(inputs: Inputs, known: Queueing) -> Permit:
    queue = inputs.observed.queue
    if queue.state is not KueueState.LISTED:
        return _unread_permit(inputs, known)
    known = _in_requested_queue(inputs, known)
    first = first_workload(inputs.plan, known)
    verdict = judge(first, queue.workload, known.name, ended_ranks(inputs))
    if queue.workload is None and known.admission is None:
        if known.deactivated and not is_activated(inputs, known):
            # Another Workload would be active.
            return Permit(record=known, paused=True)
        return Permit(record=replace(known, deactivated=False), wait=creating(known.name))
    if known.deactivated:
        return _deactivated_permit(inputs, known, verdict)
    match verdict:
        case Evicted():
            return _evicted_permit(inputs, known, verdict)
        case Unadmitted() if known.admission is None:
            return Permit(record=known, wait=verdict)
        case Admitted() if queue.workload is not None:
            admitted = admit(inputs, first, verdict, queue.workload)
            since = known.admitted_at if known.admission is not None else inputs.now
            record = replace(known, admission=admitted.tasks, reclaimed=admitted.reclaimed, admitted_at=since)
            return _admitted_permit(inputs, record)
        case _:
            return _admitted_permit(inputs, known)


def _unread_permit(inputs: Inputs, known: Queueing) -> Permit:
    """Return the permit while Kueue cannot be read: what is recorded holds, and an eviction that has begun goes on."""
    unread = _without_kueue(f"jobgate cannot read Kueue's objects: {inputs.observed.queue.error}")
    if known.admission is None and not known.deactivated:
        return replace(unread, record=known)
    stopped = [key for key, replica in inputs.recorded.replicas.items() if _is_stopped(replica)]
    if known.admission is not None and _has_been_evicted(known) and stopped:
        return Permit(record=known, eviction=_known_eviction(known.evicted, known.evicted_because))
    evictions = {
        item.number: _known_eviction(item.evicted, "Kueue's message is not recorded")
        for item in known.further
        if item.admitted and any(map(item.is_for, stopped))
    }
    return Permit(record=known, paused=known.deactivated, further_wait=unread.wait, further_evictions=evictions)


def _is_stopped(replica: Replica) -> bool:
    """Return whether an eviction stops the replica, or has stopped it, and it has not begun another attempt."""
    return not is_over(replica) and replica.attempt.stopping is StopReason.EVICT


def _known_eviction(reason: str, message: str) -> Evicted:
    return Evicted(reason=reason, message=message, holds_quota=True, is_deactivated=reason == DEACTIVATED)


def _in_requested_queue(inputs: Inputs, known: Queueing) -> Queueing:
    """Return the record in the queue that an edit of the label requests.

    A job that holds quota keeps its queue until Kueue evicts it.
    """
    requested, found = inputs.plan.queue, inputs.observed.queue.workload
    verdict = found.verdict if found is not None else None
    holds = isinstance(verdict, Admitted) or (isinstance(verdict, Unadmitted) and verdict.holds_quota)
    # Whether a queue of the kind's own scheduler counts can change without an edit.
    if requested is None or requested.of_own_scheduler or known.admission is not None or holds:
        return known
    return replace(known, name=requested.name)


def _deactivated_permit(inputs: Inputs, known: Queueing, verdict: Verdict) -> Permit:
    if isinstance(verdict, Evicted) and verdict.is_deactivated:
        return Permit(record=replace(known, evicted_because=verdict.message), paused=True)
    # The next reconcile resumes the job. Its plan is then that of a resumed job.
    return Permit(record=replace(known.queue_again(inputs.now), deactivated=False), paused=True)


def _admitted_permit(inputs: Inputs, known: Queueing) -> Permit:
    """Return the permit of an admitted job, with what Kueue has decided about its further Workloads."""
    wait: Unadmitted | None = None
    evictions: dict[int, Evicted] = {}
    further = {item.number: item for item in known.further}
    ended = ended_ranks(inputs)
    for number, item in further.items():
        observed = inputs.observed.queue.workloads.get(number)
        verdict = judge(item, observed, known.name, ended)
        match verdict:
            case Evicted() if item.admitted:
                evictions[number] = verdict
                # jobgate itself removes one without replicas.
                further[number] = replace(item, evicted="" if item.is_empty else item.evicted or verdict.reason)
            case Admitted() if observed is not None:
                further[number] = admit(inputs, item, verdict, observed)
            case Evicted() | Unadmitted() if not (item.admitted or item.is_empty):
                wait = wait or (wait_after(verdict) if isinstance(verdict, Evicted) else verdict)
    if wait is None and len(further) >= MOST_FURTHER:
        message = f"scale-ups have added {MOST_FURTHER} Workloads to this admission of the job, and may add no more"
        wait = Unadmitted(code=PendingCode.WAITING_FOR_KUEUE, message=message)
    record = replace(known, further=tuple(further.values())) if further else known
    return Permit(record=record, further_wait=wait, further_evictions=evictions)


def _evicted_permit(inputs: Inputs, known: Queueing, verdict: Evicted) -> Permit:
    record = _with_eviction(inputs, known, verdict)
    if known.admission is not None:
        return Permit(record=record, eviction=verdict)
    if verdict.is_deactivated:
        return Permit(record=_deactivate(record, inputs), paused=True)
    return Permit(record=record, wait=wait_after(verdict))


def _with_eviction(inputs: Inputs, known: Queueing, verdict: Evicted) -> Queueing:
    # While the pods stop, it is one eviction, whose message Kueue may write later than what causes it.
    is_same = known.admission is not None or (known.evicted, known.evicted_because) == (verdict.reason, verdict.message)
    began = known.evicted_at if is_same and _has_been_evicted(known) else None
    return replace(known, evicted=verdict.reason, evicted_because=verdict.message, evicted_at=began or inputs.now)


def _has_been_evicted(known: Queueing) -> bool:
    """Return whether the recorded eviction is later than the admission."""
    return known.evicted_at is not None and (known.admitted_at is None or known.evicted_at >= known.admitted_at)


def is_activated(inputs: Inputs, known: Queueing) -> bool:
    """Return whether a client has edited a deactivated job since."""
    return inputs.plan.identity.generation > known.deactivated_in


def _deactivate(record: Queueing, inputs: Inputs) -> Queueing:
    return replace(record, deactivated=True, deactivated_in=inputs.plan.identity.generation)


def update_permit(inputs: Inputs, permit: Permit, status: JobStatus, members: Members) -> Permit:
    """Return the permit after the replicas have been reconciled: an eviction is over when the last pod is gone."""
    record = permit.record
    if record is None or record.admission is None:
        return permit
    if status.phase.is_terminal:
        # The Workloads of a job that keeps no replica are finished soon.
        if not inputs.recorded.status.phase.is_terminal or not keeps_running(members.all.values()):
            return permit
    elif permit.eviction is not None:
        if not are_gone(inputs, members):
            return permit
        record = _in_requested_queue(inputs, record.queue_again(inputs.now))
        if permit.eviction.is_deactivated:
            return Permit(record=_deactivate(record, inputs), paused=True)
        return Permit(record=record, wait=wait_after(permit.eviction))
    elif inputs.plan.paused:
        return replace(permit, record=record.queue_again(inputs.now)) if are_gone(inputs, members) else permit
    if inputs.intent.cancel or inputs.intent.remove or inputs.observed.queue.state is not KueueState.LISTED:
        return permit
    return replace(permit, record=next_workloads(inputs, record, permit.further_evictions, members))

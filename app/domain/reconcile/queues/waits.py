"""What the status of a job reports of replicas that wait for an admission: all of them, or those of a scale-up."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.domain.plan import Rank
from app.domain.queueing.priorities import has_other_priority
from app.domain.queueing.workload_status import Evicted, ObservedWorkload, Unadmitted
from app.domain.reconcile.queues.admissions import creating, wait_after
from app.domain.reconcile.queues.permit import Permit
from app.domain.reconcile.values import Inputs
from app.domain.status.log_lines import one_line
from app.domain.status.observed import KueueState, ObservedPod
from app.domain.status.pods.terminating import still_terminating
from app.domain.status.records import JobPendingReason, JobStatus, Replica
from app.domain.status.rollup import SHOWN_REPLICAS, Situation, refusal_reason
from app.domain.vocabulary import JobPhase, Reason


def queued_status(inputs: Inputs, status: JobStatus, wait: Unadmitted, replicas: Mapping[Rank, Replica]) -> JobStatus:
    """Return the status of a job that waits in its queue. Neither deadline counts this wait."""
    code, message = str(wait.code), wait.message
    # The cluster refuses the Workload, or an object that it needs. Without Kueue, no Workload is tried again.
    refusal, queue = inputs.observed.job_refusal, inputs.observed.queue
    if refusal is not None and queue.state is not KueueState.ABSENT and _is_unwritten(inputs, queue.workload):
        code, message = refusal.code, refusal.message
    reason = _reason_of_wait(inputs, code, message, [key for key, replica in replicas.items() if not replica.settled])
    return replace(
        status,
        phase=JobPhase.QUEUED,
        reason=code,
        message=reason.message,
        crashed=(),
        active_since=None,
        pending_reasons=(reason,),
        pending_since=None,
    )


def _is_unwritten(inputs: Inputs, workload: ObservedWorkload | None) -> bool:
    """Return whether a Workload must still be created or changed. Otherwise no refusal counts: the answer may be lost
    to a create that has succeeded, and an edit may withdraw a change.
    """
    if workload is None or has_other_priority(inputs.plan.priority, workload.priority_class):
        return True
    # The quota of a job that waits is not given back yet.
    return isinstance(workload.verdict, Evicted) and workload.verdict.holds_quota


def _reason_of_wait(inputs: Inputs, code: str, message: str, waiting: Sequence[Rank]) -> JobPendingReason:
    """Return the pending reason of replicas that wait for an admission, since it is the same."""
    known = inputs.recorded.status.pending_reasons
    text = one_line(message)
    since = next((reason.since for reason in known if (reason.code, reason.message) == (code, text)), inputs.now)
    shown = tuple(str(key) for key in waiting[:SHOWN_REPLICAS])
    return JobPendingReason(code=code, message=text, since=since, replicas=shown, count=len(waiting))


def divide(permit: Permit, replicas: Mapping[Rank, Replica]) -> tuple[Mapping[Rank, Replica], Sequence[Rank]]:
    """Return the replicas that may run, and the ranks of those that wait for the admission of a further Workload.

    All replicas of a job without a queue may run.
    """
    waiting = [key for key, replica in replicas.items() if _lacks_admission(permit, replica)]
    if not waiting:
        return replicas, waiting
    left = set(waiting)
    return {key: replica for key, replica in replicas.items() if key not in left}, waiting


def _lacks_admission(permit: Permit, replica: Replica) -> bool:
    """Return whether a replica of an admitted job waits for a further Workload, or is stopped because of one."""
    if replica.settled or permit.record is None:
        return False
    return permit.evicts_alone(replica.key) or (replica.lacks_pod and not permit.covers(replica.key))


def scaling_situation(
    inputs: Inputs,
    permit: Permit,
    found: Situation,
    scaling: str | None,
    waiting: Sequence[Rank],
    pods: Mapping[Rank, list[ObservedPod]],
) -> tuple[Situation, JobPendingReason]:
    """Return the situation of an admitted job whose replicas `waiting` lack an admission, and their pending reason.

    `found` is the situation of all others. A job in which they run is Scaling.
    """
    evicted = next(iter(permit.further_evictions.values()), None)
    reason = _reason_of_wait(inputs, *_code_and_message(inputs, permit, evicted, waiting), waiting)
    if found.phase not in (JobPhase.RUNNING, JobPhase.SCALING):
        return found, reason
    if evicted is not None:
        text = f"{reason.message}; {still_terminating([key for key in waiting if pods.get(key)], pods)}"
        return Situation(phase=JobPhase.SCALING, reason=Reason.EVICTING, message=text), reason
    text = f"{scaling or found.message}; {len(waiting)} to be admitted: {reason.code}: {reason.message}"
    return Situation(phase=JobPhase.SCALING, reason=Reason.SCALING, message=text), reason


def _code_and_message(
    inputs: Inputs, permit: Permit, evicted: Evicted | None, waiting: Sequence[Rank]
) -> tuple[str, str]:
    """Return the code and the message of the wait of replicas for a further Workload."""
    if evicted is not None:
        wait = wait_after(evicted)
        return wait.code, wait.message
    wait = permit.further_wait or creating(permit.record.name if permit.record is not None else "")
    refusal = next((inputs.observed.refusals[key] for key in waiting if key in inputs.observed.refusals), None)
    waiting_ones = [item for item in permit.record.further if not item.admitted] if permit.record is not None else []
    workloads = [inputs.observed.queue.workloads.get(item.number) for item in waiting_ones]
    if refusal is None or not any(_is_unwritten(inputs, workload) for workload in workloads):
        return wait.code, wait.message
    # The cluster refuses the Workload.
    why = refusal_reason(refusal)
    return why.code, why.message

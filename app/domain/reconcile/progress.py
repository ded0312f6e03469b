"""Computes the status of a job after a reconcile: the phase of a live job, and whether an ended job is quiet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from app.domain.plan import Rank
from app.domain.queueing.workload_status import Evicted
from app.domain.reconcile.conditions import job_conditions
from app.domain.reconcile.endings import is_removing
from app.domain.reconcile.placing.starting import start_deadline_of
from app.domain.reconcile.queues.permit import Permit
from app.domain.reconcile.queues.waits import divide, queued_status, scaling_situation
from app.domain.reconcile.queues.workload_writes import is_released
from app.domain.reconcile.resizing import Members, changes_size, scaling_now, still_open
from app.domain.reconcile.stepping import Directive
from app.domain.reconcile.values import Inputs
from app.domain.status.failures import crashed_replicas
from app.domain.status.log_lines import one_line
from app.domain.status.observed import ObservedJob, ObservedPod
from app.domain.status.pods.terminating import still_terminating
from app.domain.status.records import Attempt, JobStatus, Replica, ScaleRecord, Transition
from app.domain.status.rollup import SHOWN_REPLICAS, Situation, aggregate, pending_reasons, situation
from app.domain.status.warnings import known_warnings
from app.domain.vocabulary import (
    Evidence,
    JobPhase,
    Outcome,
    PendingCode,
    Reason,
    ReplicaPhase,
)

# The newest transitions make the native conditions of the kinds. A bound is needed for jobs that restart for weeks.
NEWEST_TRANSITIONS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a reconcile has decided, apart from the state of the replicas.

    `scaled` are the scale records with a new outcome. `restarted` says that a restart was charged to the limits.
    `former` are the ended attempts that this reconcile has replaced. `held_back` are the replicas without a pod that
    wait until the gang of the job is placed. `cause` is the replica whose evidence the end of the job waits for.
    """

    scaled: Sequence[ScaleRecord]
    restarted: bool
    former: Mapping[Rank, Attempt] = field(default_factory=dict)
    held_back: frozenset[Rank] = frozenset()
    cause: Rank | None = None


def next_status(
    inputs: Inputs,
    status: JobStatus,
    directive: Directive,
    permit: Permit,
    members: Members,
    pods: Mapping[Rank, list[ObservedPod]],
    changes: Changes,
) -> JobStatus:
    replicas = members.wanted
    # Replicas that wait for their admission, or for another start, are counted as those that will be created.
    waits = permit.wait is not None or status.partial_start.again_at is not None
    counts = aggregate(replicas.values(), restarting=directive.start or waits)
    # Nothing is restarted or replaced in a job that ends, so what its pods do now must not change its counters.
    counted = not (status.phase.is_terminal or inputs.intent.cancel or inputs.intent.remove)
    status = replace(
        status,
        aggregate=counts,
        observed_generation=inputs.plan.identity.generation,
        restarts=status.restarts + (counted and changes.restarted),
        reschedules=status.reschedules + (counted and _is_rescheduled(inputs, status, members, changes.former)),
        restarts_in_place=sum(replica.attempt.restarts_in_place for replica in replicas.values()),
        # No edit changes what they are about: pod templates and restart policies.
        warnings=known_warnings(inputs.recorded.status.warnings, inputs.observed.warnings),
        # Invariant: uids of anchors are only added. A pod of a deleted anchor still belongs to the job.
        anchors=(*status.anchors, *(uid for uid in inputs.observed.anchors if uid not in status.anchors)),
        queueing=permit.record,
    )
    ended = status.phase.is_terminal
    # Initialized becomes true when every replica has had a pod, and stays true after restarts.
    if not ended and status.initialized_at is None and all(replica.attempt.pod_uid for replica in replicas.values()):
        status = replace(status, initialized_at=inputs.now)
    if ended:
        status = replace(status, still_running=_still_running(directive, members.all))
        status = _quiet_status(inputs, status, directive, members.all, pods)
    elif changes.cause is not None:
        status = replace(status, message=f"the job ends as Failed when the log of {changes.cause} has been read")
    else:
        status = _live_status(inputs, status, counts, permit, members, pods, changes)
    status = replace(
        status,
        conditions=job_conditions(status, inputs.plan, replicas, inputs.now),
        transitions=next_transitions(inputs.recorded.status, status, inputs.now),
    )
    # This needs the transition that may have been added.
    restored_at = _restored_at(inputs, status, members)
    return status if restored_at == status.restored_at else replace(status, restored_at=restored_at)


def _restored_at(inputs: Inputs, status: JobStatus, members: Members) -> datetime | None:
    """Return when every replica had a pod again in the latest restart or resize; None until then."""
    if status.phase not in (JobPhase.RESTARTING, JobPhase.SCALING):
        return status.restored_at
    since, known = status.transitions[-1].at, status.restored_at
    # An earlier time belongs to a former restart or resize. It stays until the present one is complete.
    is_of_now = known is not None and known >= since
    if members.still_running() or not all(_has_pod(replica) for replica in members.wanted.values()):
        return None if is_of_now else known
    return known if is_of_now else inputs.now


def _has_pod(replica: Replica) -> bool:
    """Return whether the replica has a pod, or has succeeded."""
    return replica.settled or (not replica.lacks_pod and replica.attempt.stopping is None)


def _is_rescheduled(inputs: Inputs, status: JobStatus, members: Members, former: Mapping[Rank, Attempt]) -> bool:
    """Return whether this reconcile finds replicas lost, added or removed, or withdraws the job.

    Losses in one disruption count once.
    """
    before = inputs.recorded
    is_withdrawn = status.partial_start.withdrawals > before.status.partial_start.withdrawals
    if is_withdrawn or changes_size(before, members):
        return True
    if (before.status.phase, before.status.reason) == (JobPhase.RESTARTING, Reason.DISRUPTED):
        return False
    # This reconcile may have replaced the attempt already.
    attempts = {key: former.get(key, replica.attempt) for key, replica in members.wanted.items()}
    return any(
        attempt.outcome is Outcome.DISRUPTED
        and key in before.replicas
        # Only an end that is new in this reconcile counts: the recorded attempt is the same and has not ended.
        and before.replicas[key].attempt.number == attempt.number
        and before.replicas[key].attempt.outcome is None
        for key, attempt in attempts.items()
    )


def next_transitions(before: JobStatus, status: JobStatus, now: datetime) -> tuple[Transition, ...]:
    """Return the transitions up to this status from the one before: the newest ten, and the last into each phase."""
    if (before.phase, before.reason) == (status.phase, status.reason) and before.transitions:
        return before.transitions
    latest = Transition(at=now, phase=status.phase, reason=status.reason, message=status.message)
    known = (*before.transitions, latest)
    older, newest = known[:-NEWEST_TRANSITIONS], known[-NEWEST_TRANSITIONS:]
    last = {transition.phase: transition for transition in known}
    kept = (transition for transition in older if last[transition.phase] is transition)
    return (*kept, *newest)


def _live_status(
    inputs: Inputs,
    status: JobStatus,
    counts: Mapping[ReplicaPhase, int],
    permit: Permit,
    members: Members,
    pods: Mapping[Rank, list[ObservedPod]],
    changes: Changes,
) -> JobStatus:
    replicas, plan = members.wanted, inputs.plan
    # The order of the checks is that of `_directive` in reconcile.py, so that the phase describes what the steps do.
    if inputs.intent.cancel or inputs.intent.remove:
        return replace(
            status,
            reason=Reason.CANCELLING,
            message=still_terminating([key for key, replica in members.all.items() if _is_going(replica, pods)], pods),
            pending_reasons=(),
            pending_since=None,
        )
    if plan.paused:
        return _pausing(status, members.all, pods)
    if permit.paused:
        why = permit.record.evicted_because if permit.record is not None else ""
        return replace(_pausing(status, members.all, pods), reason=Reason.DEACTIVATED, message=one_line(why))
    if permit.eviction is not None:
        return _evicting(status, permit.eviction, members.all, pods)
    if is_resuming(inputs):
        return replace(
            status,
            phase=JobPhase.RESUMING,
            reason=Reason.RESUMING,
            message="pods are created again",
            resumes=status.resumes + 1,
            pending_since=inputs.now,
        )
    if status.partial_start.again_at is not None:
        return _withdrawn_status(inputs, status, status.partial_start.again_at)
    queued = _wait_for_names(status, inputs.observed, replicas)
    if queued is None and permit.wait is not None:
        return queued_status(inputs, status, permit.wait, replicas)
    return _started_status(inputs, status, counts, permit, members, pods, changes, queued)


def _started_status(
    inputs: Inputs,
    status: JobStatus,
    counts: Mapping[ReplicaPhase, int],
    permit: Permit,
    members: Members,
    pods: Mapping[Rank, list[ObservedPod]],
    changes: Changes,
    queued: Situation | None,
) -> JobStatus:
    """Return the status of a job whose replicas may start, except those that lack an admission."""
    now, replicas = inputs.now, members.wanted
    crashed = crashed_replicas(replicas, changes.former, status.crashed)
    covered, waiting = divide(permit, replicas)
    counts = aggregate(covered.values(), restarting=True) if waiting else counts
    reasons = pending_reasons(covered, pods, inputs.observed, now, crashed, changes.held_back)
    still = still_open(inputs.recorded.scaling, changes.scaled)
    scaling = scaling_now(inputs, status, members, still)
    now_is = queued or situation(status, counts, covered, scaling, crashed, reasons)
    started_at, active_since = status.started_at, status.active_since
    if now_is.phase is JobPhase.RUNNING or (waiting and now_is.phase is JobPhase.SCALING):
        started_at, active_since = started_at or now, active_since or now
    if waiting:
        scaling = scaling_now(inputs, replace(status, started_at=started_at), members, still)
        now_is, reason = scaling_situation(inputs, permit, now_is, scaling, waiting, pods)
        reasons = (reason, *reasons)
    # Scaling is excluded: a running job that waits for further replicas must not fail by the pending deadline.
    waits = now_is.phase not in (JobPhase.RUNNING, JobPhase.UNKNOWN, JobPhase.SCALING)
    return replace(
        status,
        phase=now_is.phase,
        reason=now_is.reason,
        message=one_line(now_is.message),
        started_at=started_at,
        active_since=active_since,
        crashed=tuple(crashed.values())[:SHOWN_REPLICAS],
        pending_reasons=reasons,
        pending_since=(status.pending_since or _waits_since(inputs)) if waits else None,
    )


def _withdrawn_status(inputs: Inputs, status: JobStatus, again_at: datetime) -> JobStatus:
    """Return the status of a job that has freed its nodes. It waits, so its pending deadline goes on."""
    seconds = start_deadline_of(inputs.plan, inputs.timing)
    when = (
        f"at {again_at.isoformat(timespec='seconds')}" if inputs.now < again_at else "after others that were withdrawn"
    )
    message = (
        f"too few of its replicas found nodes within {seconds:g} s: "
        f"the job frees those that it has for other jobs, and starts again {when}{status.partial_start.obstacle}"
    )
    quiet = replace(status, crashed=(), pending_reasons=())
    return replace(quiet, phase=JobPhase.QUEUED, reason=Reason.START_DEADLINE_EXCEEDED, message=one_line(message))


def _evicting(
    status: JobStatus, eviction: Evicted, replicas: Mapping[Rank, Replica], pods: Mapping[Rank, list[ObservedPod]]
) -> JobStatus:
    """Return the status of a job whose pods are stopped because its queue requires their quota."""
    going = [key for key, replica in replicas.items() if _may_have_pod(replica, pods)]
    message = f"{eviction.reason}: {eviction.message}; {still_terminating(going, pods)}"
    quiet = replace(status, pending_reasons=(), pending_since=None, active_since=None, crashed=())
    return replace(quiet, reason=Reason.EVICTING, message=one_line(message))


def is_resuming(inputs: Inputs) -> bool:
    """Return whether this reconcile of a job that goes on turns Paused into Resuming.

    The next one uses the plan of the resumed job.
    """
    status = inputs.recorded.status
    # A pause that is withdrawn before its last pod is gone has stopped pods too, so the job must resume as well.
    return status.phase is JobPhase.PAUSED or status.reason == Reason.PAUSING


def _waits_since(inputs: Inputs) -> datetime:
    # A new job waits since its submission and not since the controller found it, so an outage counts as waiting.
    first = inputs.recorded.status.phase is JobPhase.QUEUED and not inputs.recorded.replicas
    return inputs.recorded.created_at if first else inputs.now


def _wait_for_names(status: JobStatus, observed: ObservedJob, replicas: Mapping[Rank, Replica]) -> Situation | None:
    """Return the phase Queued if objects of a finished job still have the names of this new job; otherwise None."""
    if status.started_at is not None or status.phase is JobPhase.RESUMING:
        return None
    if any(replica.attempt.pod_uid for replica in replicas.values()):
        return None
    refusals = [*([observed.job_refusal] if observed.job_refusal else []), *observed.refusals.values()]
    waiting = next((refusal for refusal in refusals if refusal.code == PendingCode.PREVIOUS_OBJECTS), None)
    if waiting is None:
        return None
    return Situation(phase=JobPhase.QUEUED, reason=PendingCode.PREVIOUS_OBJECTS, message=waiting.message)


def _pausing(status: JobStatus, replicas: Mapping[Rank, Replica], pods: Mapping[Rank, list[ObservedPod]]) -> JobStatus:
    # A paused job does not wait, and the active deadline starts again after the pause.
    quiet = replace(status, pending_reasons=(), pending_since=None, active_since=None)
    going = [key for key, replica in replicas.items() if _may_have_pod(replica, pods)]
    if going:
        return replace(quiet, reason=Reason.PAUSING, message=still_terminating(going, pods))
    return replace(
        quiet, phase=JobPhase.PAUSED, reason=Reason.PAUSED, message="no pods are kept while the job is paused"
    )


def _is_going(replica: Replica, pods: Mapping[Rank, list[ObservedPod]]) -> bool:
    if replica.attempt.outcome in (None, Outcome.STOPPED):
        return _may_have_pod(replica, pods)
    return False


def _may_have_pod(replica: Replica, pods: Mapping[Rank, list[ObservedPod]]) -> bool:
    """Return whether the replica has a pod, or one is recorded whose end the mirror does not show yet."""
    return bool(pods.get(replica.key)) or not replica.lacks_pod


def _quiet_status(
    inputs: Inputs,
    status: JobStatus,
    directive: Directive,
    replicas: Mapping[Rank, Replica],
    pods: Mapping[Rank, list[ObservedPod]],
) -> JobStatus:
    """Set `quiet` once an ended job needs no further reconcile: its pods are released, and stopped pods are gone."""
    at_rest = not inputs.observed.altered and all(is_at_rest(replica) for replica in replicas.values())
    held = any(pod.held for pod in inputs.observed.pods)
    if is_removing(inputs, status):
        # The deletion of the other objects is confirmed by the answers to it, since the mirror has only pods.
        gone = at_rest and not inputs.observed.pods and inputs.observed.objects_gone
        return replace(status, quiet=gone, gone_at=status.gone_at or (inputs.now if gone else None))
    stopped = any(pods.get(key) for key, replica in replicas.items() if replica.attempt.outcome is Outcome.STOPPED)
    # A stopped pod must be gone before the job is quiet, since its name may be needed by the next job.
    leaving = stopped or (directive.remove_finished and bool(inputs.observed.pods))
    released = is_released(inputs.observed.queue, status)
    return replace(status, quiet=at_rest and not held and not leaving and released and _is_marked(inputs))


def _still_running(directive: Directive, replicas: Mapping[Rank, Replica]) -> int:
    """Return how many replicas of an ended job run, and nothing stops them."""
    if directive.stop is not None:
        return 0
    return sum(not replica.lacks_pod and replica.attempt.stopping is None for replica in replicas.values())


def _is_marked(inputs: Inputs) -> bool:
    """Return whether the anchor has the annotation with the terminal phase. A job is quiet only after that."""
    # `anchor_marked` is in the memory of the controller. After its restart, only the record shows that the anchor is
    # marked.
    return inputs.observed.anchor_marked or inputs.recorded.status.quiet


def is_at_rest(replica: Replica) -> bool:
    attempt = replica.attempt
    if attempt.outcome is None:
        return attempt.pod_uid is None and attempt.phase is ReplicaPhase.DELETED
    return attempt.evidence is not Evidence.NONE

"""Computes the status of a live job from its replicas: the aggregate, the phase and the pending reasons."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from app.domain.plan import Rank
from app.domain.status.ends import has_failed, was_stopped
from app.domain.status.failures import cause_of, describe
from app.domain.status.log_lines import one_line
from app.domain.status.observed import ClusterRefusal, ObservedJob, ObservedPod, PendingReason, RefusalVerdict
from app.domain.status.pods.terminating import name_terminating
from app.domain.status.records import JobPendingReason, JobStatus, Replica, ReplicaFailure
from app.domain.vocabulary import VAGUE, JobPhase, Outcome, PendingCode, Reason, ReplicaPhase

# Bounds the size of a status. The list of replicas has them all.
SHOWN_REPLICAS = 20
LISTED_CRASHES = 3  # in a message; the list of replicas shows all
MAX_REASONS = 20  # listed with their messages, since each of 10 000 replicas may fail with another message
HELD_BACK = "its pod is created once all members of the gang of the job have nodes"
OTHER_MESSAGES = "these replicas have other messages"
# Replicas in these phases wait for nothing, so their pending reasons are faults.
_STARTED = frozenset({ReplicaPhase.RUNNING, ReplicaPhase.UNKNOWN})
_PASSING = frozenset({PendingCode.QUEUED, PendingCode.NAME_TERMINATING, PendingCode.BACK_OFF})


class _Group(NamedTuple):
    """What the replicas of one pending reason have in common."""

    started: bool
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The phase of a live job with its reason and message."""

    phase: JobPhase
    reason: str
    message: str


def bucket(replica: Replica, *, restarting: bool) -> ReplicaPhase:
    """Return the bucket of a replica in the aggregate. An ended replica that will be replaced counts as creating."""
    ends = replica.attempt.outcome is not None or replica.attempt.stopping is not None
    if restarting and ends and not replica.settled:
        return ReplicaPhase.CREATING
    return ReplicaPhase.FAILED if has_failed(replica) else replica.phase


def aggregate(replicas: Iterable[Replica], *, restarting: bool) -> dict[ReplicaPhase, int]:
    """Return the number of replicas in each bucket. Every bucket is present, and the sum is the number of replicas."""
    counts = Counter(bucket(replica, restarting=restarting) for replica in replicas)
    return {phase: counts.get(phase, 0) for phase in ReplicaPhase}


def has_to_start(replica: Replica) -> bool:
    """Return whether a replica has not started, for the first time or again."""
    return bucket(replica, restarting=True) in (ReplicaPhase.CREATING, ReplicaPhase.PENDING)


def situation(
    status: JobStatus,
    counts: Mapping[ReplicaPhase, int],
    replicas: Mapping[Rank, Replica],
    scaling: str | None,
    crashed: Mapping[Rank, ReplicaFailure],
    reasons: Sequence[JobPendingReason] = (),
) -> Situation:
    """Return the phase of a live job, from its former phase and its replicas.

    `scaling` describes a resize that is in progress, `crashed` has the failures of replicas that are restarted, and
    `reasons` are the pending reasons of the waiting replicas and the faults of the started ones.

    Before its first start, a job is Creating until a replica has a node, and then Pending until all have started. After
    it, the job is Running, Scaling or Restarting until it ends or is paused. It is Unknown if no node of it answers.
    """
    total = sum(counts.values())
    waiting = counts[ReplicaPhase.CREATING] + counts[ReplicaPhase.PENDING]
    faults = [reason for reason in reasons if reason.started]
    reasons = [reason for reason in reasons if not reason.started]
    live = total - counts[ReplicaPhase.SUCCEEDED] - counts[ReplicaPhase.FAILED] - counts[ReplicaPhase.DELETED]
    # A job with one replica on a node that answers still has a known phase.
    if live and counts[ReplicaPhase.UNKNOWN] == live:
        return Situation(phase=JobPhase.UNKNOWN, reason=Reason.NODE_LOST, message="no node that runs this job answers")
    # Resuming lasts until all replicas run, although the job has been started before.
    # So it does for a job that was evicted and is admitted again.
    admitted_again = status.phase is JobPhase.QUEUED and status.started_at is not None
    if waiting and (status.phase in (JobPhase.RESUMING, JobPhase.PAUSED) or admitted_again):
        message = f"{waiting} of {total} replicas are coming back{obstacle_of(reasons)}"
        return Situation(phase=JobPhase.RESUMING, reason=Reason.RESUMING, message=message)
    if scaling is not None:
        return Situation(phase=JobPhase.SCALING, reason=Reason.SCALING, message=scaling)
    if not waiting:
        message = f"{counts[ReplicaPhase.RUNNING]} of {total} replicas are running{_faults(faults)}"
        return Situation(phase=JobPhase.RUNNING, reason=Reason.STARTED, message=message)
    if status.started_at is not None:
        message = f"{waiting} of {total} replicas are restarting{_crash_list(crashed) or obstacle_of(reasons)}"
        return Situation(phase=JobPhase.RESTARTING, reason=_restart_reason(status, replicas, crashed), message=message)
    return _before_the_first_run(counts, replicas, crashed, reasons)


def _before_the_first_run(
    counts: Mapping[ReplicaPhase, int],
    replicas: Mapping[Rank, Replica],
    crashed: Mapping[Rank, ReplicaFailure],
    reasons: Sequence[JobPendingReason],
) -> Situation:
    """Return the phase of a job before all of its replicas have started for the first time.

    Its message is the most informative pending reason, unless a replica has failed.
    """
    total = sum(counts.values())
    creating, waiting = counts[ReplicaPhase.CREATING], counts[ReplicaPhase.CREATING] + counts[ReplicaPhase.PENDING]
    phase = JobPhase.CREATING if creating == total else JobPhase.PENDING
    gone = [failure for key, failure in crashed.items() if replicas[key].lacks_pod]
    if gone:
        failed = any(failure.outcome is Outcome.FAILED for failure in gone)
        others = f"; others yet to start: {waiting - len(gone)}" if waiting > len(gone) else ""
        message = f"{len(gone)} of {total} replicas failed before the job first ran{_crash_list(crashed)}{others}"
        reason = Reason.RESTARTING if failed else Reason.DISRUPTED
        return Situation(phase=phase, reason=reason, message=message)
    reason = Reason.CREATING if creating else Reason.WAITING_FOR_PODS
    why = _most_informative(reasons)
    if why is not None and not crashed:
        share = f" ({why.count} of {total} replicas)" if why.count < total else ""
        return Situation(phase=phase, reason=reason, message=f"{why.code}: {why.message}{share}")
    message = (
        f"{creating} of {total} replicas have no node yet"
        if creating
        else f"{waiting} of {total} replicas have not started"
    )
    return Situation(phase=phase, reason=reason, message=message + _crash_list(crashed))


def _most_informative(reasons: Sequence[JobPendingReason]) -> JobPendingReason | None:
    """Return the pending reason that helps most: one that names an obstacle, and then the most frequent one."""
    return min(reasons, key=_vagueness, default=None)


def _vagueness(reason: JobPendingReason) -> int:
    """Return 0 for an obstacle, 1 for a wait that ends by itself, and 2 for a code that does not name a cause."""
    return 2 if reason.code in VAGUE else 1 if reason.code in _PASSING else 0


def obstacle_of(reasons: Sequence[JobPendingReason]) -> str:
    """Return the most informative pending reason as the end of a sentence; empty if no reason names an obstacle."""
    why = _most_informative(reasons)
    return f": {why.code}: {why.message}" if why is not None and not _vagueness(why) else ""


def _faults(faults: Sequence[JobPendingReason]) -> str:
    """Return how many started replicas have a fault, and the most frequent one, as the end of a sentence."""
    if not faults:
        return ""
    return f"; {sum(fault.count for fault in faults)} with a fault: {faults[0].code}: {faults[0].message}"


def _crash_list(crashed: Mapping[Rank, ReplicaFailure]) -> str:
    """Return the first few failures of restarted replicas, as the end of a sentence."""
    if not crashed:
        return ""
    listed = [cause_of(failure) for failure in list(crashed.values())[:LISTED_CRASHES]]
    more = [f"and {len(crashed) - LISTED_CRASHES} more"] if len(crashed) > LISTED_CRASHES else []
    return ": " + "; ".join(listed + more)


def _restart_reason(status: JobStatus, replicas: Mapping[Rank, Replica], crashed: Mapping[Rank, ReplicaFailure]) -> str:
    """Return Disrupted if only the cluster has cost the job replicas since it last ran; otherwise Restarting."""
    ended = [replica.attempt for replica in replicas.values() if not replica.settled]
    lost = {attempt.outcome for attempt in ended if not was_stopped(attempt)}
    # One reconcile can find an attempt ended and replace it.
    lost |= {failure.outcome for failure in crashed.values()}
    if lost & {Outcome.FAILED, Outcome.SUCCEEDED}:
        return Reason.RESTARTING
    # The reason of a restart stays until the job runs again, even if the lost attempts are already replaced.
    if status.phase is JobPhase.RESTARTING:
        return status.reason
    return Reason.DISRUPTED if Outcome.DISRUPTED in lost else Reason.RESTARTING


def pending_reasons(
    replicas: Mapping[Rank, Replica],
    pods: Mapping[Rank, list[ObservedPod]],
    observed: ObservedJob,
    now: datetime,
    crashed: Mapping[Rank, ReplicaFailure],
    held_back: Container[Rank] = (),
) -> tuple[JobPendingReason, ...]:
    """Return the pending reasons of all replicas, grouped by code and message, the most frequent first.

    Replicas that are `held_back` wait for the gang of their job.
    Replicas that have started, or whose node does not answer, form other groups than those that wait. If there are many
    messages, the last groups have the replicas with all other messages of a code.
    """
    groups: dict[_Group, list[tuple[Rank, datetime | None]]] = {}
    for key, replica in replicas.items():
        reason = _why(replica, pods.get(key, []), observed, now, crashed.get(key))
        if reason is None and key in held_back:
            reason = PendingReason(code=PendingCode.WAITING_FOR_GANG, message=HELD_BACK)
        if reason is not None:
            group = _Group(replica.phase in _STARTED, reason.code, one_line(reason.message))
            groups.setdefault(group, []).append((key, reason.since))
    # The text breaks ties, so that an unchanged state gives an equal status and nothing is written.
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    others: dict[_Group, list[tuple[Rank, datetime | None]]] = {}
    for group, members in ordered[MAX_REASONS:]:
        others.setdefault(group._replace(message=OTHER_MESSAGES), []).extend(members)
    return tuple(
        JobPendingReason(
            code=group.code,
            message=group.message,
            since=min((since for _, since in members if since is not None), default=None),
            replicas=tuple(str(key) for key, _ in members[:SHOWN_REPLICAS]),
            count=len(members),
            started=group.started,
        )
        for group, members in [*ordered[:MAX_REASONS], *others.items()]
    )


def _why(
    replica: Replica, pods: list[ObservedPod], observed: ObservedJob, now: datetime, failure: ReplicaFailure | None
) -> PendingReason | None:
    # The replica has no next attempt yet, so no time of its start is known.
    if replica.attempt.outcome is not None:
        return _back_off(failure, f"attempt {replica.attempt.number + 1} follows") if failure is not None else None
    if replica.attempt.stopping is not None:
        return name_terminating(pods)
    current = next((pod for pod in pods if pod.attempt == replica.attempt.number), None)
    if replica.phase in _STARTED:
        return current.pending if current is not None else None
    if replica.phase not in (ReplicaPhase.CREATING, ReplicaPhase.PENDING):
        return None
    if current is not None:
        # A cause in the pod's status is newer than its Events, which are read at intervals.
        if current.pending is not None and current.pending.code not in VAGUE:
            return current.pending
        reason = observed.pending_events.get(current.uid) or current.pending
        if reason is not None and reason.code is PendingCode.UNSCHEDULABLE and current.group:
            return replace(reason, code=PendingCode.GANG_UNSCHEDULABLE)
        return reason
    if pods:
        return name_terminating(pods)
    if replica.retry_at is not None and replica.retry_at > now:
        at = replica.retry_at.isoformat(timespec="seconds")
        return _back_off(failure, f"attempt {replica.attempt.number} starts at {at}")
    refusal = observed.job_refusal or observed.refusals.get(replica.key)
    return refusal_reason(refusal) if refusal is not None else None


def _back_off(failure: ReplicaFailure | None, next_attempt: str) -> PendingReason:
    failed = [describe(f"attempt {failure.attempt}", failure)] if failure is not None else []
    return PendingReason(code=PendingCode.BACK_OFF, message="; ".join([*failed, next_attempt]))


def refusal_reason(refusal: ClusterRefusal) -> PendingReason:
    """Return the refusal of a create by the cluster as a pending reason.

    A running job whose new replicas are refused has it until the refusal ends, or the job is scaled down.
    """
    if refusal.verdict is RefusalVerdict.FAIL:
        return PendingReason(code=PendingCode.REFUSED, message=refusal.message, since=refusal.since)
    return PendingReason(code=PendingCode(refusal.code), message=refusal.message, since=refusal.since)

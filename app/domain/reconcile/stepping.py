"""Takes the next step of one replica: create, wait, read Events, capture evidence, replace, release or delete.

A step returns the replica to record, and the actions to execute afterwards. No step relies on the execution of an
earlier action.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from app.domain.reconcile.actions import (
    Action,
    CaptureEvidence,
    ConfirmGone,
    CreatePod,
    DeletePod,
    ReadEvents,
    ReleasePod,
)
from app.domain.reconcile.lifecycle import NO_POD, NODE_LOST_WARNING, pod_of
from app.domain.reconcile.timing import Timing
from app.domain.status.ends import is_loss, was_stopped
from app.domain.status.failures import cause_of, failure_of
from app.domain.status.log_lines import MAX_LINES
from app.domain.status.observed import ObservedJob, ObservedPod
from app.domain.status.records import Attempt, HistoryEntry, Replica, ReplicaFailure
from app.domain.vocabulary import (
    VAGUE,
    Evidence,
    JobPhase,
    Outcome,
    Reason,
    ReplicaPhase,
    StopReason,
)

UNFOLLOWED_EVERY = timedelta(seconds=10)  # between two reads of a pod that has lost the job's labels


_REASON_OF_RETURN: Final[Mapping[StopReason | None, Reason]] = {
    StopReason.SCALE_DOWN: Reason.SCALING,
    StopReason.START_DEADLINE: Reason.START_DEADLINE_EXCEEDED,
    StopReason.UNPLACEABLE: Reason.RESTARTING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """What a reconcile does with all replicas of a job.

    `stop` deletes running pods for that reason, `stop_unstarted` those of which no container has started,
    `remove_finished` also deletes the pods of ended attempts, and `start` allows new attempts.
    """

    start: bool = False
    stop: StopReason | None = None
    stop_unstarted: StopReason | None = None
    remove_finished: bool = False


@dataclass(slots=True, kw_only=True)
class Step:
    """The result of one step of a replica."""

    replica: Replica
    pod_name: str
    actions: list[Action] = field(default_factory=list)
    history: list[HistoryEntry] = field(default_factory=list)
    wake_at: datetime | None = None
    former: Attempt | None = None  # the ended attempt that this step has replaced
    waits_for_gang: bool = False  # the pod is created once the gang of the job is placed

    def wake(self, at: datetime) -> None:
        self.wake_at = at if self.wake_at is None else min(self.wake_at, at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepper:
    """Steps the replicas of one job in one reconcile. `phase` and `first_failure` are those of the job."""

    observed: ObservedJob
    directive: Directive
    phase: JobPhase
    first_failure: ReplicaFailure | None
    timing: Timing
    now: datetime

    def step(self, replica: Replica, pod_name: str, pods: Sequence[ObservedPod], *, is_new: bool) -> Step:
        step = Step(replica=replica, pod_name=pod_name)
        current = pod_of(replica.attempt, pods)
        for pod in pods:
            if pod is not current:
                self._clear(step, pod)
        if replica.attempt.outcome is not None:
            self._after_end(step, current)
        elif current is not None:
            self._alive(step, current)
        elif replica.attempt.pod_uid is not None:
            self._unseen(step, replica.attempt.pod_uid)
        else:
            self._absent(step, pods, is_new=is_new)
        if current is not None and not current.followed:
            self._read_again(step, current)
        attempt = step.replica.attempt
        if step.replica.retry_at is not None and (attempt.pod_uid is not None or attempt.outcome is not None):
            step.replica = replace(step.replica, retry_at=None)
        return step

    def _unseen(self, step: Step, uid: str) -> None:
        """Request a quorum read of a recorded pod that the mirror lacks: it may be gone, or the mirror may lag."""
        self._mark_stopping(step)
        step.actions.append(ConfirmGone(name=step.pod_name, uid=uid))

    def _read_again(self, step: Step, pod: ObservedPod) -> None:
        """Read a pod that the watch does not deliver, until nothing about it can change the job."""
        deletes = any(isinstance(action, DeletePod) for action in step.actions)
        if pod.ended and not (pod.held or pod.deleting or deletes):
            return
        step.actions.append(ConfirmGone(name=pod.name, uid=pod.uid))
        step.wake(self.now + UNFOLLOWED_EVERY)

    def _mark_stopping(self, step: Step) -> None:
        attempt = step.replica.attempt
        unstarted = attempt.started_at is None and attempt.phase in (ReplicaPhase.CREATING, ReplicaPhase.PENDING)
        stop = self.directive.stop or (self.directive.stop_unstarted if unstarted else None)
        if stop is not None and attempt.stopping is None:
            step.replica = replace(step.replica, attempt=replace(attempt, stopping=stop))

    def _clear(self, step: Step, pod: ObservedPod) -> None:
        """Delete a pod of another attempt: a former one, or one that a controller without the lease created."""
        if not pod.deleting:
            step.actions.append(DeletePod(name=pod.name, uid=pod.uid))
        # The evidence of a former attempt is stored before the attempt is replaced, so its pod can be released. A pod
        # whose create took effect later has none.
        if pod.held and (pod.ended or pod.attempt != step.replica.attempt.number):
            step.actions.append(ReleasePod(name=pod.name, uid=pod.uid))
        self._force_if_lost(step, pod)

    def _absent(self, step: Step, pods: Sequence[ObservedPod], *, is_new: bool) -> None:
        replica = step.replica
        if self.directive.start:
            if replica.phase is not ReplicaPhase.CREATING:
                step.replica = replace(replica, attempt=replace(replica.attempt, phase=ReplicaPhase.CREATING))
            # A pod of another attempt still has the name. `_clear` deletes it, and its end starts another reconcile.
            if pods:
                return
            if replica.retry_at is not None and replica.retry_at > self.now:
                step.wake(replica.retry_at)
                return
            # Repeating this create is safe: the name of the pod contains the rank, and its labels the attempt.
            step.actions.append(CreatePod(key=replica.key, attempt=replica.attempt.number))
        elif self.directive.stop is not None or self.phase.is_terminal:
            step.replica = replace(replica, attempt=self._never_created(replica.attempt, is_new=is_new))

    def _never_created(self, attempt: Attempt, *, is_new: bool) -> Attempt:
        """Return the end of an attempt without a pod.

        An earlier create may still arrive, so its number is not reused.
        """
        # A new attempt has never been passed to the actuator, so no create of it can arrive.
        if is_new or attempt.phase is ReplicaPhase.DELETED:
            return replace(attempt, phase=ReplicaPhase.DELETED)
        reason = self.directive.stop or StopReason.CLEAN_UP
        return replace(
            attempt,
            phase=ReplicaPhase.DELETED,
            outcome=Outcome.STOPPED,
            stopping=reason,
            reason=reason,
            evidence=Evidence.UNAVAILABLE,
            evidence_reason=NO_POD,
        )

    def _alive(self, step: Step, pod: ObservedPod) -> None:
        self._mark_stopping(step)
        if step.replica.attempt.stopping is not None and not pod.deleting:
            step.actions.append(DeletePod(name=pod.name, uid=pod.uid))
        if pod.deleting:
            self._force_if_lost(step, pod)
        # A healthy pod starts within seconds. Events are read only if it does not, because each read is a request.
        elif pod.phase in (ReplicaPhase.CREATING, ReplicaPhase.PENDING) and pod.created_at is not None:
            self._explain(step, pod, pod.created_at)

    def _explain(self, step: Step, pod: ObservedPod, created_at: datetime) -> None:
        if pod.pending is not None and pod.pending.code not in VAGUE:
            return
        due = created_at + timedelta(seconds=self.timing.events_after)
        # A time in the future is one of another clock, which says nothing about how long the pod has been pending.
        if created_at <= self.now < due:
            step.wake(due)
        elif pod.uid not in self.observed.pending_events:
            step.actions.append(ReadEvents(name=pod.name, uid=pod.uid))

    def _force_if_lost(self, step: Step, pod: ObservedPod) -> None:
        after = self.timing.node_lost_after
        # Forced deletion gives up the guarantee that the process has ended, so it needs a lost node and a long wait.
        if pod.deletion_deadline is None or pod.node not in self.observed.lost_nodes or after is None:
            return
        due = pod.deletion_deadline + timedelta(seconds=after)
        if due > self.now:
            step.wake(due)
            return
        step.actions.append(DeletePod(name=pod.name, uid=pod.uid, force=True))
        if pod.held:
            step.actions.append(ReleasePod(name=pod.name, uid=pod.uid))
        attempt = step.replica.attempt
        if attempt.pod_uid == pod.uid and attempt.outcome is None and attempt.message != NODE_LOST_WARNING:
            lost = replace(attempt, reason=Reason.NODE_LOST, message=NODE_LOST_WARNING)
            step.replica = replace(step.replica, attempt=lost)
            step.history.append(self._entry(step.replica, Reason.NODE_LOST, f"{pod.name}: {NODE_LOST_WARNING}"))

    def _after_end(self, step: Step, pod: ObservedPod | None) -> None:
        replica = step.replica
        if pod is not None and not pod.ended:
            self._stop_late(step, pod)
            return
        # Invariant: the evidence is stored, or known to be unavailable, before the pod is replaced or released.
        if replica.attempt.evidence is Evidence.NONE:
            self._capture(step, pod)
            if step.replica.attempt.evidence is Evidence.NONE:
                return
        if self._may_restart(replica):
            self._restart(step, pod)
            return
        self._report(step)
        if pod is None:
            return
        unwanted = self.directive.remove_finished or pod.lingering or replica.attempt.outcome is Outcome.STOPPED
        if unwanted and not pod.deleting:
            step.actions.append(DeletePod(name=pod.name, uid=pod.uid))
        # The other containers of a main container run on for the grace period.
        if pod.held and not pod.lingering:
            step.actions.append(ReleasePod(name=pod.name, uid=pod.uid))
        self._force_if_lost(step, pod)

    def _stop_late(self, step: Step, pod: ObservedPod) -> None:
        """Delete a pod that appears after its attempt has ended: the API server carried out the create late."""
        if not pod.deleting:
            step.actions.append(DeletePod(name=pod.name, uid=pod.uid))
        self._force_if_lost(step, pod)

    def _capture(self, step: Step, pod: ObservedPod | None) -> None:
        attempt = step.replica.attempt
        if pod is None:
            if attempt.pod_uid is not None and attempt.pod_uid not in self.observed.gone:
                step.actions.append(ConfirmGone(name=step.pod_name, uid=attempt.pod_uid))
                return
            lost = replace(
                attempt,
                evidence=Evidence.UNAVAILABLE,
                evidence_reason="the pod was gone before its logs could be read",
            )
            step.replica = replace(step.replica, attempt=lost)
            return
        step.actions.append(
            CaptureEvidence(
                key=step.replica.key,
                attempt=attempt.number,
                pod_name=pod.name,
                pod_uid=pod.uid,
                # A container that never started has no log, and the kubelet answers a request for it with an error.
                containers=tuple(c.name for c in pod.containers if c.started_at is not None or c.restart_count),
                created_at=pod.created_at,
                node=pod.node,
                failed_container=pod.failed_container if is_loss(attempt) else None,
                lines=MAX_LINES if self._failed_first(step.replica) else 1,
            )
        )

    def _failed_first(self, replica: Replica) -> bool:
        first = self.first_failure
        return first is not None and (first.key, first.attempt) == (replica.key, replica.attempt.number)

    def _may_restart(self, replica: Replica) -> bool:
        return self.directive.start and not replica.settled

    def _restart(self, step: Step, pod: ObservedPod | None) -> None:
        replica, attempt = step.replica, step.replica.attempt
        wait, restarts, disruptions = timedelta(0), 0, 0
        if not was_stopped(attempt):
            if attempt.outcome is Outcome.DISRUPTED:
                wait, disruptions = self.timing.disruption_backoff(replica.disruptions), 1
            else:
                wait, restarts = self.timing.backoff(replica.restarts), 1
        step.former = attempt
        step.replica = Replica(
            key=replica.key,
            attempt=Attempt(number=attempt.number + 1),
            restarts=replica.restarts + restarts,
            disruptions=replica.disruptions + disruptions,
            # Not from `finished_at`: the kubelet wrote it by another clock, which may be ahead or behind.
            retry_at=self.now + wait if wait else None,
        )
        # `step.replica` has the next attempt now, so `_clear` releases this pod as one of a former attempt.
        if pod is not None:
            self._clear(step, pod)
        if step.replica.retry_at is not None:
            step.wake(step.replica.retry_at)
        step.history.append(self._entry(replica, *_restart_entry(replica, attempt.number + 1)))

    def _report(self, step: Step) -> None:
        """Add a history row about a failed attempt that no attempt follows now, once its evidence is known."""
        replica = step.replica
        if not replica.unreported:
            return
        step.replica = replace(replica, unreported=False)
        end = "; no attempt follows" if replica.settled else ""
        message = f"{cause_of(failure_of(replica.key, replica.attempt))}{end}"
        step.history.append(self._entry(replica, Reason.REPLICA_FAILED, message))

    def _entry(self, replica: Replica, reason: str, message: str) -> HistoryEntry:
        return HistoryEntry(
            at=self.now,
            phase=self.phase,
            reason=reason,
            message=message,
            key=replica.key,
            attempt=replica.attempt.number,
        )


def _restart_entry(replica: Replica, number: int) -> tuple[str, str]:
    attempt = replica.attempt
    if was_stopped(attempt):
        reason = _REASON_OF_RETURN.get(attempt.stopping, Reason.RESUMING)
        return reason, f"{replica.key} comes back as attempt {number}"
    if attempt.outcome is Outcome.SUCCEEDED:
        return Reason.RESTARTING, f"{replica.key} succeeded; attempt {number} follows"
    cause = cause_of(failure_of(replica.key, attempt))
    if attempt.outcome is Outcome.DISRUPTED:
        return Reason.DISRUPTED, f"{cause}; attempt {number} replaces it"
    return Reason.RESTARTING, f"{cause}; attempt {number} follows"

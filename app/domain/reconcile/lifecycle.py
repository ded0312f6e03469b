"""The life of one replica. A reconcile updates the attempt from its pod (`track`) and evaluates its end (`settle`).

    attempt n:  (no pod) -> Creating -> Pending -> Running -> ended -> evidence -> replaced by n+1, or settled
                                 any of them -> stopping -> ended (stopped)

The module `stepping` then takes the next step.

Invariant: an attempt without a recorded pod uid never had a pod that ran. The evidence finalizer keeps every pod of
jobgate visible until this code releases it, so creating the pod of such an attempt again cannot run the attempt twice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.domain.plan import RestartPlan, RetryableExits
from app.domain.reconcile.timing import Timing
from app.domain.status.ends import is_loss, was_stopped
from app.domain.status.observed import ObservedPod
from app.domain.status.records import Attempt, Recorded, Replica
from app.domain.vocabulary import (
    Evidence,
    Outcome,
    Reason,
    ReplicaPhase,
    RestartPolicy,
    RestartScope,
)

OUT_OF_MEMORY = "OOMKilled"  # the reason that the kubelet reports
# The message is also the mark of an attempt whose pod was deleted by force: nothing else in the record shows that.
NODE_LOST_WARNING = (
    "its node does not answer, so the process may still run; the pod object was deleted without waiting for it"
)
NO_POD = "the attempt had no pod"  # the reason why its evidence is unavailable


def track(replica: Replica, pods: Sequence[ObservedPod], gone: frozenset[str]) -> Replica:
    """Return the replica with its current attempt updated from its pod. A recorded end never changes."""
    attempt = replica.attempt
    pod = pod_of(attempt, pods)
    if attempt.outcome is not None:
        # A create took effect after the attempt had ended without a pod. Recording the uid lets the step delete the
        # pod. It may run before that, so its evidence is captured like that of any other pod.
        if pod is not None and attempt.pod_uid is None:
            late = replace(attempt, pod_uid=pod.uid, node=pod.node, evidence=Evidence.NONE, evidence_reason=None)
            return replace(replica, attempt=late)
        return replica
    if pod is None:
        # Absence from the mirror proves nothing, because it may lag behind. Only a quorum read confirms that a pod is
        # gone.
        if attempt.pod_uid is None or attempt.pod_uid not in gone:
            return replica
        return _with_observation(replica, _end_without_pod(attempt))
    return _with_observation(replica, _mirror(attempt, pod))


def _with_observation(replica: Replica, attempt: Attempt) -> Replica:
    """Return the replica with its attempt as it was just observed. A failure is to be reported in the history."""
    if attempt == replica.attempt:
        return replica
    return replace(replica, attempt=attempt, unreported=replica.unreported or is_loss(attempt))


def pod_of(attempt: Attempt, pods: Iterable[ObservedPod]) -> ObservedPod | None:
    """Return the pod of the attempt: the recorded one, or the first one with the number of the attempt."""
    for pod in pods:
        # An attempt has at most one uid: a second pod with its number is not its pod.
        if pod.attempt == attempt.number and attempt.pod_uid in (None, pod.uid):
            return pod
    return None


def _end_without_pod(attempt: Attempt) -> Attempt:
    evidence = attempt.evidence is not Evidence.NONE
    reason, message = attempt.stopping or Reason.POD_VANISHED, attempt.message
    if message != NODE_LOST_WARNING:
        message = "" if attempt.stopping else "the pod disappeared before its end could be seen"
    elif attempt.stopping is None:
        reason = Reason.NODE_LOST
    return replace(
        attempt,
        # The evidence finalizer keeps every pod, so a pod can vanish only if another client removed it by force.
        outcome=Outcome.STOPPED if attempt.stopping else Outcome.DISRUPTED,
        phase=ReplicaPhase.DELETED,
        reason=reason,
        message=message,
        evidence=attempt.evidence if evidence else Evidence.UNAVAILABLE,
        evidence_reason=attempt.evidence_reason if evidence else "the pod was gone before its logs could be read",
    )


def _mirror(attempt: Attempt, pod: ObservedPod) -> Attempt:
    outcome = _outcome(attempt, pod) if pod.ended else None
    reason, message = pod.reason, pod.message
    if outcome is Outcome.STOPPED:
        reason = attempt.stopping
    elif attempt.message == NODE_LOST_WARNING:
        reason, message = Reason.NODE_LOST, attempt.message
    elif outcome is Outcome.DISRUPTED:
        reason = pod.disruption or Reason.POD_DELETED
        message = pod.message or "the pod was deleted, not by jobgate"
    # Field by field: this is called for each replica in each reconcile, and `replace` takes twice as long.
    return Attempt(
        number=attempt.number,
        pod_uid=pod.uid,
        # The pod object may remain for a while. Its own phase, such as Failed, must not be counted.
        phase=ReplicaPhase.DELETED if outcome in (Outcome.STOPPED, Outcome.DISRUPTED) else pod.phase,
        outcome=outcome,
        stopping=attempt.stopping,
        evidence=attempt.evidence,
        evidence_reason=attempt.evidence_reason,
        node=pod.node or attempt.node,
        pod_ip=pod.pod_ip or attempt.pod_ip,
        created_at=pod.created_at or attempt.created_at,
        started_at=pod.started_at or attempt.started_at,
        finished_at=pod.finished_at,
        exit_code=pod.exit_code,
        reason=reason,
        message=message,
        containers=pod.containers,
        last_lines=attempt.last_lines,
        hold=attempt.hold,
    )


def _outcome(attempt: Attempt, pod: ObservedPod) -> Outcome:
    # The reason to stop is stored before the delete is sent, so any later end may be the effect of the delete. A
    # success counts even if the cluster was removing the pod: the work is done, and a replacement would repeat it.
    if attempt.stopping is not None:
        return Outcome.STOPPED
    if pod.phase is ReplicaPhase.SUCCEEDED:
        return Outcome.SUCCEEDED
    if pod.disruption is not None or pod.deleting:
        return Outcome.DISRUPTED
    return Outcome.FAILED


class RestartLimits:
    """The restart limits of a job in one reconcile.

    If the limit is one of the whole job, replicas that fail while the job restarts belong to that restart. `charged`
    says that this reconcile has charged a new restart.

    Invariant: with such a limit, no replica restarts more often than its job. So a replica that fails again and again
    during a restart that lasts, because another replica cannot get a pod, does reach the limit.
    """

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded.replicas
        self._job_restarts = recorded.status.restarts
        self._restarting = _is_restarting(recorded)
        self.charged = False

    def grants(self, replica: Replica, plan: RestartPlan) -> bool:
        # An ended attempt is settled again in each reconcile until its evidence is stored, but must be charged only
        # once.
        if self._was_granted(replica):
            return True
        # The replicas of a failed job end one after another, and their ends must not be charged as several restarts.
        of_job = plan.scope is RestartScope.JOB
        if of_job and self._restarting and replica.restarts < self._job_restarts:
            return True
        spent = self._job_restarts if of_job else replica.restarts
        granted = plan.limit is None or spent < plan.limit
        self.charged |= granted
        return granted

    def _was_granted(self, replica: Replica) -> bool:
        before = self._recorded.get(replica.key)
        return before is not None and not before.settled and _same_end(before.attempt, replica.attempt)


def _same_end(before: Attempt, after: Attempt) -> bool:
    return before.number == after.number and before.outcome is not None


def _is_restarting(recorded: Recorded) -> bool:
    """Return whether the job is in a restart after a failure, which lasts until every replica has a pod again.

    A restart because of a disruption is not charged, so failures during it cannot belong to a charged one.
    """
    status = recorded.status
    if status.reason == Reason.RESTARTING:
        return not status.is_restored
    # The reason of a resize or a resume hides that a failed replica waits for its next pod.
    failed = (recorded.replicas.get(failure.key) for failure in status.crashed if failure.outcome is Outcome.FAILED)
    return any(replica is not None and replica.lacks_pod for replica in failed)


def settle(replica: Replica, plan: RestartPlan, limits: RestartLimits, timing: Timing) -> Replica:
    """Determine whether an ended attempt is the last of its replica; if not, charge a restart to the limits."""
    if replica.settled or replica.attempt.outcome is None:
        return replica
    if was_stopped(replica.attempt):
        return replica
    if replica.attempt.outcome is Outcome.DISRUPTED:
        # Disruptions cost no restart. The limit ends a replica that is disrupted again and again.
        return replace(replica, settled=replica.disruptions >= timing.disruption_limit)
    return replace(replica, settled=not (_wants_restart(replica.attempt, plan) and limits.grants(replica, plan)))


def _wants_restart(attempt: Attempt, plan: RestartPlan) -> bool:
    if plan.policy is RestartPolicy.ON_FAILURE:
        failed = attempt.outcome is not Outcome.SUCCEEDED
        return failed and (plan.retryable is None or _is_retryable(attempt, plan.retryable))
    return plan.policy is RestartPolicy.ALWAYS


def _is_retryable(attempt: Attempt, exits: RetryableExits) -> bool:
    """Return whether another attempt may succeed.

    A container that never started did not fail: the obstacle may pass.
    """
    container = next((item for item in attempt.containers if item.name == exits.container and not item.init), None)
    if container is None or container.exit_code is None:
        return True
    # The same container would run out of memory again, and one that succeeded did not cause the end of the pod.
    if container.reason == OUT_OF_MEMORY or container.exit_code == 0:
        return False
    return not container.message or container.exit_code >= exits.least_code

"""One replica's life, in three steps a pass: track what its pod says, settle what an end means, step (`stepping`) on.

    attempt n:  (no pod) -> creating -> pending -> running -> ended -> evidence -> replaced by n+1, or settled
                                 any of them -> stopping -> ended (stopped)

An attempt whose pod uid was never recorded never had a pod that ran: the evidence finalizer keeps every pod of ours
visible until this code has let it go, so creating the same attempt again cannot double it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.domain.plan import Rank, RestartPlan
from app.domain.status.observed import ObservedPod
from app.domain.status.records import Attempt, Replica
from app.domain.timing import Timing
from app.domain.vocabulary import (
    BudgetScope,
    Evidence,
    Outcome,
    Reason,
    ReplicaPhase,
    RestartPolicy,
)

NODE_LOST_WARNING = (
    "its node does not answer, so the process may still run; the pod object was deleted without waiting for it"
)


def track(replica: Replica, pods: Sequence[ObservedPod], gone: frozenset[str]) -> Replica:
    """Bring the current attempt up to what its pod says; an end that was recorded never changes again."""
    attempt = replica.attempt
    pod = pod_of(attempt, pods)
    if attempt.outcome is not None:
        if pod is not None and attempt.pod_uid is None:
            return replace(replica, attempt=replace(attempt, pod_uid=pod.uid, node=pod.node))
        return replica
    if pod is None:
        if attempt.pod_uid is None or attempt.pod_uid not in gone:
            return replica
        return replace(replica, attempt=_vanished(attempt))
    return replace(replica, attempt=_mirror(attempt, pod))


def pod_of(attempt: Attempt, pods: Iterable[ObservedPod]) -> ObservedPod | None:
    """The attempt's pod: the one it recorded, else the first that carries its number."""
    for pod in pods:
        if pod.attempt == attempt.number and attempt.pod_uid in (None, pod.uid):
            return pod
    return None


def _vanished(attempt: Attempt) -> Attempt:
    evidence = attempt.evidence is not Evidence.NONE
    reason, message = attempt.stopping or Reason.POD_VANISHED, attempt.message
    if message != NODE_LOST_WARNING:
        message = "" if attempt.stopping else "the pod disappeared before its end could be seen"
    elif attempt.stopping is None:
        reason = Reason.NODE_LOST
    return replace(
        attempt,
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
    return replace(
        attempt,
        pod_uid=pod.uid,
        phase=ReplicaPhase.DELETED if outcome in (Outcome.STOPPED, Outcome.DISRUPTED) else pod.phase,
        outcome=outcome,
        node=pod.node or attempt.node,
        pod_ip=pod.pod_ip or attempt.pod_ip,
        created_at=pod.created_at or attempt.created_at,
        started_at=pod.started_at or attempt.started_at,
        finished_at=pod.finished_at,
        exit_code=pod.exit_code,
        reason=reason,
        message=message,
        containers=pod.containers,
    )


def _outcome(attempt: Attempt, pod: ObservedPod) -> Outcome:
    if attempt.stopping is not None:
        return Outcome.STOPPED
    if pod.phase is ReplicaPhase.SUCCEEDED:
        return Outcome.SUCCEEDED
    if pod.disruption is not None or pod.deleting:
        return Outcome.DISRUPTED
    return Outcome.FAILED


class Budget:
    """Charges restarts in rank order, so that a shared budget is spent the same way in every repetition of a pass."""

    def __init__(self, replicas: Iterable[Replica]) -> None:
        self._by_rank: dict[Rank, int] = {replica.key: replica.restarts for replica in replicas}

    def allows(self, key: Rank, plan: RestartPlan) -> bool:
        return plan.limit is None or self._spent(key, plan.scope) < plan.limit

    def charge(self, key: Rank) -> None:
        self._by_rank[key] = self._by_rank.get(key, 0) + 1

    def _spent(self, key: Rank, scope: BudgetScope) -> int:
        if scope is BudgetScope.REPLICA:
            return self._by_rank.get(key, 0)
        return sum(self._by_rank.values())


def settle(replica: Replica, plan: RestartPlan, budget: Budget, timing: Timing) -> Replica:
    """Say whether an ended attempt is the replica's last; one that is to be restarted is charged here."""
    if replica.settled or replica.attempt.outcome is None:
        return replica
    if replica.attempt.outcome is Outcome.STOPPED:
        return replica
    if replica.attempt.outcome is Outcome.DISRUPTED:
        return replace(replica, settled=replica.disruptions >= timing.disruption_limit)
    succeeded = replica.attempt.outcome is Outcome.SUCCEEDED
    wanted = plan.policy is RestartPolicy.ALWAYS or (plan.policy is RestartPolicy.ON_FAILURE and not succeeded)
    again = wanted and budget.allows(replica.key, plan)
    if again:
        budget.charge(replica.key)
    return replace(replica, settled=not again)


def has_failed(replica: Replica) -> bool:
    """Whether the replica has failed for good: no restart is left."""
    return replica.settled and replica.attempt.outcome in (Outcome.FAILED, Outcome.DISRUPTED)


def has_succeeded(replica: Replica) -> bool:
    return replica.settled and replica.attempt.outcome is Outcome.SUCCEEDED

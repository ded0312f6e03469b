"""Checks that every reconcile must pass, whatever happened before it."""

from dataclasses import replace
from itertools import pairwise

from app.domain.plan import Rank
from app.domain.queueing.admission import Admitted
from app.domain.reconcile.actions import CreatePod, DeletePod, ReleasePod
from app.domain.reconcile.lifecycle import NO_POD
from app.domain.reconcile.reconcile import PODS_PER_RECONCILE, reconcile
from app.domain.reconcile.values import Decision, Inputs
from app.domain.status.records import Attempt
from app.domain.vocabulary import Evidence
from tests.support.model.cluster import World
from tests.support.plans import actions_of, next_record


def check_reconcile(world: World, inputs: Inputs, decision: Decision) -> None:
    _is_repeatable(inputs, decision)
    _says_how_fresh_it_is(inputs, decision)
    _sums_up(inputs, decision)
    _freezes_the_end(inputs, decision)
    _keeps_the_first_failure(inputs, decision)
    _keeps_recorded_ends(world, decision)
    _says_everything_once(world, decision)
    _keeps_pods_for_evidence(world, inputs, decision)
    _stays_in_limits(world, inputs, decision)
    _leaves_remaining_replicas_alone(inputs, decision)
    assert len(actions_of(decision, CreatePod, DeletePod, ReleasePod)) <= PODS_PER_RECONCILE


def _is_repeatable(inputs: Inputs, decision: Decision) -> None:
    """The same inputs give the same decision, and reconciling the recorded result again changes nothing."""
    assert reconcile(inputs) == decision
    recorded = next_record(inputs.recorded, decision) if decision.dirty else inputs.recorded
    due_now = decision.wake_at is not None and decision.wake_at <= inputs.now
    repeated = reconcile(replace(inputs, recorded=recorded))
    if not decision.again and not due_now:
        assert not repeated.dirty, (decision, repeated)
        assert set(repeated.actions) <= set(decision.actions), (decision, repeated)
    if not decision.dirty:
        assert not decision.changed
        assert not decision.ended
        assert not due_now, "nothing changes, and yet another reconcile is due at once"
        assert not decision.again


def _says_how_fresh_it_is(inputs: Inputs, decision: Decision) -> None:
    assert decision.status.observed_at == (inputs.now if decision.dirty else inputs.recorded.status.observed_at)


def _sums_up(inputs: Inputs, decision: Decision) -> None:
    assert sum(decision.status.aggregate.values()) == len(inputs.plan.replicas)
    leaving = {key for key, replica in decision.replicas.items() if replica.leaving}
    assert set(decision.replicas) - leaving == set(inputs.plan.replicas)
    assert set(inputs.recorded.replicas) <= set(decision.replicas), "the record of a replica is lost"
    assert not {action.key for action in actions_of(decision, CreatePod)} & leaving


def _freezes_the_end(inputs: Inputs, decision: Decision) -> None:
    before, after = inputs.recorded.status, decision.status
    if before.phase.is_terminal:
        assert (before.phase, before.reason, before.message, before.finished_at) == (
            after.phase,
            after.reason,
            after.message,
            after.finished_at,
        )
        assert not actions_of(decision, CreatePod)


def _keeps_the_first_failure(inputs: Inputs, decision: Decision) -> None:
    """A first failure stays, and only its log lines are added later. An ended job gets no new one."""
    before, after = inputs.recorded.status, decision.status
    if before.first_failure is None:
        assert after.first_failure is None or not before.phase.is_terminal
    else:
        assert after.first_failure is not None
        lines = before.first_failure.last_lines or after.first_failure.last_lines
        assert replace(before.first_failure, last_lines=lines) == after.first_failure


def _end(attempt: Attempt) -> tuple[object, ...]:
    return (attempt.outcome, attempt.exit_code, attempt.finished_at, attempt.reason, attempt.phase)


def _keeps_recorded_ends(world: World, decision: Decision) -> None:
    current = {(key, replica.attempt.number): replica.attempt for key, replica in decision.replicas.items()}
    for where, attempt in [*current.items(), *(((key, attempt.number), attempt) for key, attempt in decision.ended)]:
        before = world.attempts.get(where)
        if before is not None:
            assert _end(before) == _end(attempt)
            assert before.pod_uid in (None, attempt.pod_uid)
            # The pod of a late create has evidence, although the record said that the attempt had no pod.
            is_late = before.pod_uid is None and attempt.pod_uid is not None
            assert before.evidence in (Evidence.NONE, attempt.evidence) or (
                is_late and attempt.evidence is Evidence.NONE
            )
            assert (attempt.evidence_reason == NO_POD) <= (attempt.pod_uid is None)


def _says_everything_once(world: World, decision: Decision) -> None:
    lines = [*world.history, *decision.history]
    of_job = [(entry.phase, entry.reason) for entry in lines if entry.key is None]
    assert all(one != other for one, other in pairwise(of_job)), of_job
    of_replicas = [(entry.key, entry.attempt, entry.reason) for entry in lines if entry.key is not None]
    assert len(of_replicas) == len(set(of_replicas)), of_replicas


def _keeps_pods_for_evidence(world: World, inputs: Inputs, decision: Decision) -> None:
    """No pod is released before its evidence is known. Pods of lost nodes are force-deleted."""
    known = {**world.attempts}
    known.update({(key, replica.attempt.number): replica.attempt for key, replica in decision.replicas.items()})
    known.update({(key, attempt.number): attempt for key, attempt in decision.ended})
    attempts = {attempt.pod_uid: attempt for attempt in known.values() if attempt.pod_uid is not None}
    forced = {action.uid for action in actions_of(decision, DeletePod) if action.force}
    running = {pod.uid for pod in inputs.observed.pods if not pod.ended} - forced
    current = {replica.attempt.pod_uid for replica in decision.replicas.values()}
    assert not {action.uid for action in actions_of(decision, ReleasePod)} & running & current
    for action in actions_of(decision, ReleasePod):
        attempt = attempts.get(action.uid)
        if attempt is None or action.uid in forced:
            continue
        assert attempt.outcome is not None, f"{action.name} is released while it runs"
        assert attempt.evidence is not Evidence.NONE, f"{action.name} is released before its evidence is known"
    for action in actions_of(decision, CreatePod):
        former = known.get((action.key, action.attempt - 1))
        if action.attempt > 1:
            assert former is not None
            assert former.outcome is not None
            assert former.evidence is not Evidence.NONE
        assert inputs.recorded.replicas.get(action.key) is None or action.attempt >= _number(inputs, action.key)


def _number(inputs: Inputs, key: Rank) -> int:
    return inputs.recorded.replicas[key].attempt.number


def _stays_in_limits(world: World, inputs: Inputs, decision: Decision) -> None:
    # Each eviction stops all replicas, and they come back with the next attempt.
    resumes = decision.status.resumes + (world.kueue.returns + 1 if world.kueue is not None else 0)
    for key, replica in decision.replicas.items():
        if replica.leaving:
            continue
        limit = inputs.plan.restarts[key.task].limit
        assert replica.disruptions <= inputs.timing.disruption_limit
        assert limit is None or replica.restarts <= limit
        came_back = resumes + inputs.plan.identity.generation
        charged = replica.restarts + replica.disruptions + world.forgiven.get(key, 0)
        assert replica.attempt.number <= charged + came_back
        before = inputs.recorded.replicas.get(key)
        if before is not None and not before.leaving:
            assert replica.restarts >= before.restarts
            assert replica.disruptions >= before.disruptions


def _leaves_remaining_replicas_alone(inputs: Inputs, decision: Decision) -> None:
    """While the job is live, no running pod of a planned rank is stopped or deleted."""
    intent, phase = inputs.intent, decision.status.phase
    if intent.cancel or intent.remove or inputs.plan.paused or phase.is_terminal:
        return
    deleted = {action.uid for action in actions_of(decision, DeletePod) if not action.force}
    for key, before in inputs.recorded.replicas.items():
        attempt = before.attempt
        if key not in inputs.plan.replicas or attempt.outcome is not None or attempt.stopping is not None:
            continue
        if _evicts(inputs, key):
            continue
        after = decision.replicas[key].attempt
        ended = after.outcome is not None or after.number != attempt.number
        assert ended or (after.stopping is None and attempt.pod_uid not in deleted), (key, decision)


def _evicts(inputs: Inputs, key: Rank) -> bool:
    """Return whether the queue of the job requires the quota of a replica, or the Workload that holds it is gone."""
    record, workloads = inputs.recorded.status.queueing, inputs.observed.queue.workloads
    if record is None or record.admission is None:
        return False
    numbers = [0, *(item.number for item in record.further if item.is_for(key))]
    verdicts = [workloads[number].verdict if number in workloads else None for number in numbers]
    return any(not isinstance(verdict, Admitted) for verdict in verdicts)

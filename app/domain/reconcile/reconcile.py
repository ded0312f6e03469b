"""Compares plan, intent, record and observed pods of one job, and computes its new status and the next actions.

Reconcile is level-triggered: it uses the present state and no events, so the controller may stop at any line and repeat
it. The order of the checks is fixed: cancel and removal, then deadlines and refusals, then the rules, then pause, then
the queue. The phase of an ended job never changes; after the end, reconcile only follows the replicas and objects until
they are gone.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from app.domain.plan import Rank
from app.domain.reconcile.actions import (
    Action,
    CaptureEvidence,
    CreatePod,
    DeletePod,
    DiscardObject,
    EnsureObjects,
    EnsureWorkload,
    MarkAnchor,
    ReleasePod,
    RemoveObjects,
    WriteHosts,
)
from app.domain.reconcile.endings import (
    active_deadline,
    ended_status,
    finish,
    is_removing,
    own_removal_due,
    pending_deadline,
)
from app.domain.reconcile.in_place import restart_entries
from app.domain.reconcile.lifecycle import RestartLimits, settle
from app.domain.reconcile.placing.gangs import place_gang
from app.domain.reconcile.placing.misplaced import replace_misplaced
from app.domain.reconcile.placing.starting import next_start, start_due
from app.domain.reconcile.progress import Changes, is_at_rest, is_resuming, next_status
from app.domain.reconcile.queues.permit import Permit, derive_permit, update_permit
from app.domain.reconcile.queues.workload_writes import is_removed, queue_actions
from app.domain.reconcile.resizing import Members, as_leaving, as_wanted, settled_records
from app.domain.reconcile.stepping import Directive, Step, Stepper
from app.domain.reconcile.usage import UsageFollower
from app.domain.reconcile.values import Decision, Inputs
from app.domain.status.failures import first_failure
from app.domain.status.observed import ObservedJob, ObservedPod
from app.domain.status.records import Attempt, HistoryEntry, JobStatus, Replica, ReplicaFailure, ScaleRecord
from app.domain.usage.sums import NO_CHANGE
from app.domain.vocabulary import (
    CleanUpPolicy,
    Evidence,
    JobPhase,
    Reason,
    ReplicaPhase,
    StopReason,
)

# A reconcile compares all replicas of the job, so few actions would make the cost of a start or a deletion quadratic in
# the number of replicas. The actuator bounds the time that the actions take.
PODS_PER_RECONCILE = 1000
# History rows about failed attempts of one job: enough to see how it failed, and little if 10 000 replicas crash again
# and again. The replicas list all attempts.
MAX_FAILURE_ROWS = 1000
NO_FURTHER_ROWS = "the history has no rows about further failures of this job: see its replicas"
_OF_FAILURES = frozenset({Reason.RESTARTING, Reason.DISRUPTED, Reason.REPLICA_FAILED})
# The reasons with which the replicas of a job end it. After any other end, such as a cancel, running pods are stopped.
# A job with ENDED_IN_CLUSTER has been cleaned up when it ended: what runs is what its clean-up policy keeps.
ENDS_BY_RULE = frozenset(
    {Reason.RULE_FULFILLED, Reason.SUCCESS_IMPOSSIBLE, Reason.NO_RULE_FULFILLED, Reason.ENDED_IN_CLUSTER}
)


def reconcile(inputs: Inputs) -> Decision:
    """Reconcile one job. The function is pure: the caller stores the decision and then executes its actions."""
    pods = _pods_by_rank(inputs.observed)
    limits = RestartLimits(inputs.recorded)
    permit = derive_permit(inputs)
    usage = UsageFollower(inputs=inputs)
    members = _track_all(usage, pods, limits)
    # The end is determined before the steps, so that no step starts a replica of a job that ends in this reconcile.
    end = finish(inputs, members)
    # The message of the end contains the last line of the log of its cause. Until that is read, the job keeps its phase
    # and starts nothing. The capture deadline bounds this wait.
    waiting_for = end.cause if end is not None and end.awaits_evidence else None
    if waiting_for is not None:
        end = None
    before = inputs.recorded.status
    status = ended_status(before, end, inputs.now) if end is not None else before
    failure = _first_failure(inputs, members)
    if failure != status.first_failure:
        status = replace(status, first_failure=failure)
    start = next_start(inputs, members)
    if start != status.partial_start:
        status = replace(status, partial_start=start)
    directive = _directive(inputs, status, permit) if waiting_for is None else Directive()
    steps = _step_all(inputs, status, directive, permit, members, pods)
    after = Members(
        wanted={key: steps[key].replica for key in members.wanted},
        leaving={key: steps[key].replica for key in members.leaving},
    )
    permit = update_permit(inputs, permit, status, after)
    scaled = settled_records(inputs, status, after)
    # A restart replaces the ended attempt, but the status still has to count and to list it.
    former = {key: step.former for key, step in steps.items() if step.former is not None}
    held_back = frozenset(key for key, step in steps.items() if step.waits_for_gang)
    cause = waiting_for.key if waiting_for is not None else None
    changes = Changes(scaled=scaled, restarted=limits.charged, former=former, held_back=held_back, cause=cause)
    status = next_status(inputs, status, directive, permit, after, pods, changes)
    status = usage.follow_job(status, directive, after, paused=permit.paused)
    return _decision(inputs, status, permit, steps, after, scaled, usage, cause)


def _pods_by_rank(observed: ObservedJob) -> dict[Rank, list[ObservedPod]]:
    grouped: dict[Rank, list[ObservedPod]] = {}
    for pod in observed.pods:
        grouped.setdefault(pod.key, []).append(pod)
    return grouped


def _track_all(usage: UsageFollower, pods: Mapping[Rank, list[ObservedPod]], limits: RestartLimits) -> Members:
    inputs, recorded = usage.inputs, usage.inputs.recorded.replicas
    wanted: dict[Rank, Replica] = {}
    for key in inputs.plan.replicas:
        before = recorded.get(key) or Replica(key=key, attempt=Attempt(number=1))
        replica = usage.track(as_wanted(before), pods.get(key, []))
        wanted[key] = settle(replica, inputs.plan.restarts[key.task], limits, inputs.timing)
    leaving = {
        key: as_leaving(usage.track(before, pods.get(key, []))) for key, before in recorded.items() if key not in wanted
    }
    return Members(wanted=wanted, leaving=leaving)


def _first_failure(inputs: Inputs, members: Members) -> ReplicaFailure | None:
    before = inputs.recorded.status
    return first_failure(before.first_failure, members.all, inputs.now, ended=before.phase.is_terminal)


def _directive(inputs: Inputs, status: JobStatus, permit: Permit) -> Directive:
    plan, intent = inputs.plan, inputs.intent
    if is_removing(inputs, status):
        # The order matters: a removal also stops what a clean-up policy or a pause would keep.
        return Directive(stop=StopReason.REMOVE, remove_finished=True)
    if status.phase.is_terminal:
        directive = _clean_up(plan.clean_up, status)
        # A cancel of an ended job stops the replicas that the clean-up policy keeps, and so does an eviction.
        if directive.stop is None and (intent.cancel or permit.eviction is not None):
            return Directive(stop=StopReason.CANCEL if intent.cancel else StopReason.EVICT)
        return directive
    if intent.cancel:
        return Directive(stop=StopReason.CANCEL)
    if plan.paused:
        return Directive(stop=StopReason.PAUSE, remove_finished=True)
    if permit.eviction is not None:
        return Directive(stop=StopReason.EVICT, remove_finished=True)
    # The inputs have the plan of the paused job. Only the next reconcile has that of the resumed job, so no pod is
    # created yet.
    if is_resuming(inputs) or permit.wait is not None or permit.paused:
        return Directive()
    if status.partial_start.again_at is not None:
        return Directive(stop=StopReason.START_DEADLINE)
    return Directive(start=True)


def _clean_up(policy: CleanUpPolicy, status: JobStatus) -> Directive:
    """Return the directive of the clean-up policy. Only a job that ended by its rules may leave pods running."""
    if policy is CleanUpPolicy.ALL:
        return Directive(stop=StopReason.CLEAN_UP, remove_finished=True)
    if policy is CleanUpPolicy.UNFINISHED or status.reason not in ENDS_BY_RULE:
        return Directive(stop=StopReason.CLEAN_UP)
    # What runs goes on, as upstream does. What has not started would begin work for a job that has ended.
    return Directive(stop_unstarted=StopReason.CLEAN_UP)


def _step_all(
    inputs: Inputs,
    status: JobStatus,
    directive: Directive,
    permit: Permit,
    members: Members,
    pods: Mapping[Rank, list[ObservedPod]],
) -> dict[Rank, Step]:
    stepper = Stepper(
        observed=inputs.observed,
        directive=directive,
        phase=status.phase,
        first_failure=status.first_failure,
        timing=inputs.timing,
        now=inputs.now,
    )
    known = inputs.recorded.replicas
    steps: dict[Rank, Step] = {}
    for key, replica in members.wanted.items():
        own = _directive_of(key, directive, permit)
        chosen = stepper if own is directive else replace(stepper, directive=own)
        name = inputs.plan.pod_name(key)
        steps[key] = chosen.step(replica, name, pods.get(key, []), is_new=key not in known)
    for key, replica in members.leaving.items():
        # A replica beyond the size of its task stops even while all others start.
        own = replace(directive, start=False, stop=directive.stop or StopReason.SCALE_DOWN)
        name = inputs.recorded.pod_names.get(key, "")
        steps[key] = replace(stepper, directive=own).step(replica, name, pods.get(key, []), is_new=False)
    if directive.start:
        place_gang(inputs.plan, steps, pods, deleting=inputs.observed.group_deleting)
        if permit.record is not None:
            replace_misplaced(permit.record, steps, pods)
    return steps


def _directive_of(key: Rank, directive: Directive, permit: Permit) -> Directive:
    """Return the directive for a replica of the plan: that of the job, unless its own Workload is not admitted."""
    if permit.evicts_alone(key) and directive.stop is None:
        return Directive(stop=StopReason.EVICT)
    if not directive.start:
        return directive
    # A replica beyond what the job is admitted for does not start. If it runs, its size was reduced meanwhile.
    return directive if permit.covers(key) else replace(directive, start=False)


def _decision(
    inputs: Inputs,
    status: JobStatus,
    permit: Permit,
    steps: Mapping[Rank, Step],
    members: Members,
    scaled: tuple[ScaleRecord, ...],
    usage: UsageFollower,
    cause: Rank | None,
) -> Decision:
    """Return the decision. `cause` is the replica whose evidence the end of the job waits for."""
    recorded, replicas = inputs.recorded, members.all
    changed = tuple(replica for key, replica in replicas.items() if recorded.replicas.get(key) != replica)
    ended = _ended_attempts(inputs, steps, replicas)
    history, failure_rows = _history(inputs, status, steps)
    if failure_rows != status.failure_rows:
        status = replace(status, failure_rows=failure_rows)
    # An attempt that has ended is that of a changed replica.
    dirty = bool(changed or history or scaled) or status != recorded.status
    actions, cut = _actions(inputs, status, steps, replicas, cause)
    queue = queue_actions(inputs, status, permit, members, removing=is_removing(inputs, status))
    # The Workload names the anchor as its owner.
    first = any(isinstance(action, EnsureWorkload) for action in queue) and EnsureObjects() not in actions
    actions = (*([EnsureObjects()] if first else []), *actions, *queue)
    # `observed_at` alone is no change: otherwise every reconcile would write a row and a feed entry.
    if dirty:
        status = replace(status, observed_at=inputs.now)
    return Decision(
        status=status,
        replicas=replicas,
        changed=changed,
        ended=ended,
        history=history,
        scaled=scaled,
        actions=actions,
        wake_at=_wake_at(inputs, status, steps),
        again=cut
        or _needs_another_reconcile(inputs, status, steps, replicas)
        or (cause is not None and replicas[cause].attempt.evidence is not Evidence.NONE),
        dirty=dirty,
        usage=usage.change(status, replicas) if dirty else NO_CHANGE,
    )


def _ended_attempts(
    inputs: Inputs, steps: Mapping[Rank, Step], replicas: Mapping[Rank, Replica]
) -> tuple[tuple[Rank, Attempt], ...]:
    """Return the attempts with a new end: current ones, and those that this reconcile has replaced."""
    known = {key: replica.attempt for key, replica in inputs.recorded.replicas.items()}
    return tuple(
        (key, attempt)
        for key, replica in replicas.items()
        for attempt in (steps[key].former, replica.attempt)
        if attempt is not None and attempt.outcome is not None and attempt != known.get(key)
    )


def _history(inputs: Inputs, status: JobStatus, steps: Mapping[Rank, Step]) -> tuple[tuple[HistoryEntry, ...], int]:
    """Return the new history rows, and how many rows about failed attempts the job has with them."""
    before = inputs.recorded.status
    entries = restart_entries(inputs.recorded.replicas, inputs.observed.pods, status.phase, inputs.now)
    failure_rows = before.failure_rows
    for entry in (entry for step in steps.values() for entry in step.history):
        if entry.reason in _OF_FAILURES:
            if failure_rows >= MAX_FAILURE_ROWS:
                continue
            failure_rows += 1
        last = entry.reason in _OF_FAILURES and failure_rows == MAX_FAILURE_ROWS
        entries.append(replace(entry, message=f"{entry.message} ({NO_FURTHER_ROWS})") if last else entry)
    if (before.phase, before.reason) != (status.phase, status.reason):
        actor = inputs.intent.cancel_actor if status.phase is JobPhase.CANCELLED else None
        entry = HistoryEntry(at=inputs.now, phase=status.phase, reason=status.reason, message=status.message)
        entries.append(replace(entry, actor=actor) if actor else entry)
    return tuple(entries), failure_rows


def _actions(
    inputs: Inputs,
    status: JobStatus,
    steps: Mapping[Rank, Step],
    replicas: Mapping[Rank, Replica],
    cause: Rank | None,
) -> tuple[tuple[Action, ...], bool]:
    """Return the actions of this reconcile, at most PODS_PER_RECONCILE on pods, and whether further ones remain.

    The capture of the evidence that the end of the job waits for, that of `cause`, comes first.
    Creates that the cluster has refused before come last and do not count as remaining, since they have a back-off.
    """
    altered = [DiscardObject(altered=item) for item in inputs.observed.altered]
    steps_actions = (action for step in steps.values() for action in step.actions)
    wanted: list[Action] = [*altered, *_foreign_pods(inputs), *steps_actions]
    refused = [action for action in wanted if _is_refused(inputs.observed, action)]
    fresh = [action for action in wanted if not _is_refused(inputs.observed, action)]
    fresh.sort(key=lambda action: not (isinstance(action, CaptureEvidence) and action.key == cause))
    actions = [*fresh, *refused][:PODS_PER_RECONCILE]
    if _needs_hosts_update(inputs, status):
        actions.insert(0, WriteHosts())
    # Pods and the list of hosts name the anchor as their owner, so the anchor must exist first.
    if any(isinstance(action, (CreatePod, WriteHosts)) for action in actions):
        actions.insert(0, EnsureObjects())
    if status.phase.is_terminal and not status.quiet:
        if not is_removing(inputs, status):
            if not inputs.observed.anchor_marked:
                actions.append(MarkAnchor(phase=status.phase))
        elif _may_remove_objects(inputs, status, replicas):
            actions.append(RemoveObjects())
    return tuple(actions), len(fresh) > PODS_PER_RECONCILE


def _may_remove_objects(inputs: Inputs, status: JobStatus, replicas: Mapping[Rank, Replica]) -> bool:
    """Return whether the anchor may be removed, and the objects that it owns.

    Invariant: it is removed after all pods and the Workload, because the garbage collector deletes them together with
    it.
    """
    if inputs.observed.pods or inputs.observed.altered or not is_removed(inputs.observed.queue, status):
        return False
    return all(is_at_rest(replica) for replica in replicas.values())


def _needs_hosts_update(inputs: Inputs, status: JobStatus) -> bool:
    """Return whether the list of hosts in the cluster belongs to another generation than the plan."""
    plan = inputs.plan
    if plan.hosts is None or status.phase.is_terminal or inputs.intent.cancel or inputs.intent.remove:
        return False
    return inputs.observed.hosts_generation != plan.identity.generation


def _is_refused(observed: ObservedJob, action: Action) -> bool:
    return isinstance(action, CreatePod) and (observed.job_refusal is not None or action.key in observed.refusals)


def _foreign_pods(inputs: Inputs) -> list[Action]:
    """Return actions that delete pods of ranks that the job never had. A controller without lease created them."""
    actions: list[Action] = []
    for pod in inputs.observed.pods:
        if pod.key in inputs.plan.replicas or pod.key in inputs.recorded.replicas:
            continue
        if not pod.deleting:
            actions.append(DeletePod(name=pod.name, uid=pod.uid))
        if pod.held:
            actions.append(ReleasePod(name=pod.name, uid=pod.uid))
    return actions


def _needs_another_reconcile(
    inputs: Inputs, status: JobStatus, steps: Mapping[Rank, Step], replicas: Mapping[Rank, Replica]
) -> bool:
    """Return whether another reconcile would change more, without any change in the cluster."""
    if status.resumes != inputs.recorded.status.resumes:
        return True
    # An admission begins or ends: the next reconcile starts the replicas, resumes the job, or waits.
    if status.queueing != inputs.recorded.status.queueing:
        return True
    # The clean-up policy applies only to a recorded end.
    if inputs.recorded.status.phase is not status.phase and status.phase.is_terminal:
        return True
    # The step that replaced an attempt has not created the pod of the new one.
    if any(step.former is not None for step in steps.values()):
        return True
    # The end of the job was determined before the steps, and may depend on a replica that has left in this one.
    before = inputs.recorded.replicas
    return any(
        replica.phase is ReplicaPhase.DELETED and (key not in before or before[key].phase is not ReplicaPhase.DELETED)
        for key, replica in replicas.items()
    )


def _wake_at(inputs: Inputs, status: JobStatus, steps: Mapping[Rank, Step]) -> datetime | None:
    """Return the next deadline in the future. What is past its deadline waits for a change in the cluster."""
    times = [step.wake_at for step in steps.values()]
    if status.phase.is_terminal:
        times.append(None if is_removing(inputs, status) else own_removal_due(inputs.plan, status))
    elif not (inputs.intent.cancel or inputs.intent.remove):
        times += [
            active_deadline(inputs.plan, status),
            pending_deadline(inputs, status),
            start_due(inputs, status.partial_start),
        ]
    return min((time for time in times if time is not None), default=None)

"""One pass over one SampleSet."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from app.domain.cache.reconcile.events import already_exists, complained, created, done, failed, not_created
from app.domain.cache.reconcile.removal import remove
from app.domain.cache.reconcile.values import (
    CacheAction,
    Complaint,
    Create,
    LabelNode,
    PostOptions,
    SampleEvent,
    Scale,
    SetDecision,
    SetInputs,
    SetObserved,
    SetRecord,
)
from app.domain.cache.vocabulary import Found, JobType, ServerJobState, SetPart, SetPhase

STORAGE: Final = (SetPart.PV, SetPart.PVC)
SERVERS: Final = (SetPart.TOKEN, SetPart.SERVICE, SetPart.RUNTIME)
# Seconds; the pauses are upstream's, but for those it would wait for ever in.
_SECRET: Final = 30.0
_CREATED: Final = 1.0
_STARTING: Final = 10.0
_NO_WARNING: Final = 5.0
_BLOCKED: Final = 30.0
_LONGEST: Final = 300.0
_SYNC: Final = 5.0
_MOUNT: Final = 10.0
_PARTIAL: Final = 10.0
_READY_FIRST: Final = 5.0  # doubled at each look up to _READY: a file system may tell of new files late
_READY_LOOKS: Final = 3
_READY: Final = 30.0
_READY_IN_USE: Final = 60.0
_MAX_DOUBLINGS: Final = 10
_SYNC_ENDED_BADLY: Final = failed(JobType.SYNC, "").reason


def reconcile_set(inputs: SetInputs) -> SetDecision:
    if inputs.deleted:
        return remove(inputs)
    record, events = _noticed(inputs)
    noticing = replace(inputs, record=record)
    blocked, missing = _objects(noticing)
    if record.phase is SetPhase.NONE:
        decision = _unbound(noticing, blocked, missing)
    elif missing or blocked is not None:
        decision = _incomplete(noticing, blocked, missing)
    else:
        decision = _STEPS[record.phase](noticing)
    return replace(decision, events=(*events, *decision.events))


def _noticed(inputs: SetInputs) -> tuple[SetRecord, tuple[SampleEvent, ...]]:
    """What the cluster has now and had not before, and the newest cache status."""
    record, observed = inputs.record, inputs.observed
    new = [r for r in SetPart if observed.of(r) is Found.OURS and r not in record.made]
    lost = {r for r in record.made if observed.of(r) is not Found.OURS}
    record = replace(
        record,
        made=(record.made | set(new)) - lost,
        runtime=observed.runtime,
        cache=observed.cache or record.cache,
    )
    return record, tuple(created(part) for part in new)


def _objects(inputs: SetInputs) -> tuple[Complaint | None, list[SetPart]]:
    """What is in the way of the objects that the set needs in its phase, and which of them are missing."""
    needed = STORAGE if inputs.record.phase is SetPhase.NONE else (*STORAGE, *SERVERS)
    observed = inputs.observed
    foreign = [part for part in needed if observed.of(part) is Found.FOREIGN]
    missing = [part for part in needed if observed.of(part) is Found.ABSENT]
    if foreign:
        return already_exists(foreign[0]), missing
    if any(part in STORAGE for part in missing) and observed.secret is not None:
        return observed.secret, []
    refused = next((part for part in missing if part in observed.failures), None)
    return (not_created(refused, observed.failures[refused]) if refused else None), missing


def _unbound(inputs: SetInputs, blocked: Complaint | None, missing: list[SetPart]) -> SetDecision:
    if missing or blocked is not None:
        return _incomplete(inputs, blocked, missing)
    if not inputs.observed.volume_bound:
        return _stay(inputs, None, _CREATED)
    return _go(inputs, SetPhase.BOUND)


def _incomplete(inputs: SetInputs, blocked: Complaint | None, missing: list[SetPart]) -> SetDecision:
    if blocked is not None and blocked == inputs.observed.secret:
        return _stay(inputs, blocked, _SECRET)
    pause = _BLOCKED if blocked is not None else _CREATED if inputs.record.phase is SetPhase.NONE else _STARTING
    return _stay(inputs, blocked, pause, *(Create(part=part) for part in missing))


def _bound(inputs: SetInputs) -> SetDecision:
    observed = inputs.observed
    if observed.runtime.ready_replicas > 0:
        return _go(inputs, SetPhase.MOUNT)
    if observed.warning is None:
        return _stay(inputs, None, _NO_WARNING)
    delays = min(inputs.record.delays + 1, _MAX_DOUBLINGS)
    decision = _stay(inputs, observed.warning, min(_NO_WARNING * 2**delays, _LONGEST))
    return replace(decision, record=replace(decision.record, delays=delays))


def _mount(inputs: SetInputs) -> SetDecision:
    record, observed = inputs.record, inputs.observed
    if not inputs.spec.no_sync and not record.sync_job:
        if observed.sync_refusal is not None:
            return _stay(inputs, observed.sync_refusal, _SECRET)
        if not observed.digest:
            return _stay(inputs, None, _MOUNT)
        posted = replace(record, sync_job=inputs.fresh_name, digest=observed.digest, synced=False)
        return _go(
            replace(inputs, record=posted),
            SetPhase.SYNCING,
            PostOptions(job=posted.sync_job, servers=(0,)),
            after=_SYNC,
        )
    return _stay(inputs, None, _MOUNT) if observed.cache is None else _go(inputs, SetPhase.PARTIAL_READY)


def _syncing(inputs: SetInputs) -> SetDecision:
    record, answer = inputs.record, inputs.observed.sync
    status = answer.status if answer else ServerJobState.UNKNOWN
    if status is ServerJobState.SUCCESS:
        # The figures of this pass may be older than the end of the sync. The server has newer ones from its result on.
        ended = replace(record, cache=None)
        after = replace(ended, sync_job="", digest="") if _is_outdated(inputs) else replace(ended, synced=True)
        return replace(_go(replace(inputs, record=after), SetPhase.MOUNT), events=(done(JobType.SYNC),))
    if status is ServerJobState.FAIL:
        decision, event = _go(inputs, SetPhase.SYNC_FAILED), failed(JobType.SYNC, answer.message if answer else "")
        told = replace(decision.record, complaint=Complaint(reason=event.reason, message=event.message))
        return replace(decision, record=told, events=(event,))
    if status is ServerJobState.NOT_POSTED:
        return _stay(inputs, None, _SYNC, PostOptions(job=record.sync_job, servers=(0,)))
    return _stay(inputs, None, _SYNC)


def _is_outdated(inputs: SetInputs) -> bool:
    """Whether the sync was begun with other options than the spec has by now: it may not be changed once it is done."""
    now = inputs.observed.digest
    return bool(now) and now != inputs.record.digest and not inputs.spec.no_sync


def _sync_failed(inputs: SetInputs) -> SetDecision:
    record, observed = inputs.record, inputs.observed
    if inputs.spec.no_sync:
        return _go(inputs, SetPhase.MOUNT)
    if observed.digest and observed.digest != record.digest:
        return _go(replace(inputs, record=replace(record, sync_job="", digest="")), SetPhase.MOUNT)
    before = record.complaint
    why = before if before is not None and before.reason == _SYNC_ENDED_BADLY else None
    return _stay(inputs, observed.sync_refusal or why, _SECRET)


def _partial_ready(inputs: SetInputs) -> SetDecision:
    if _is_complete(inputs):
        return _go(inputs, SetPhase.READY, *_labelling(inputs.observed))
    return _stay(inputs, None, _PARTIAL, *_labelling(inputs.observed), *_scaling(inputs))


def _ready(inputs: SetInputs) -> SetDecision:
    if not _is_complete(inputs):
        return _go(inputs, SetPhase.PARTIAL_READY, *_labelling(inputs.observed), *_scaling(inputs))
    cache, looks = inputs.record.cache, inputs.record.delays
    pause: float | None = min(_READY_FIRST * 2**looks, _READY)
    if cache is not None and cache.is_whole and pause == _READY:
        pause = _READY_IN_USE if inputs.observed.in_use else None
    decision = _stay(inputs, None, pause, *_labelling(inputs.observed))
    return replace(decision, record=replace(decision.record, delays=min(looks + 1, _READY_LOOKS)))


def _is_complete(inputs: SetInputs) -> bool:
    runtime, wanted = inputs.observed.runtime, inputs.spec.partitions
    return wanted == runtime.spec_replicas == runtime.ready_replicas == len(inputs.observed.nodes)


def _scaling(inputs: SetInputs) -> list[CacheAction]:
    wanted = inputs.spec.partitions
    return [] if inputs.observed.runtime.spec_replicas == wanted else [Scale(replicas=wanted)]


def _labelling(observed: SetObserved) -> list[CacheAction]:
    """The label on exactly the nodes that hold a running pod."""
    wanted: Mapping[str, str] = observed.nodes
    actions: list[CacheAction] = [
        LabelNode(node=node, value=pod) for node, pod in sorted(wanted.items()) if observed.labelled.get(node) != pod
    ]
    stale = sorted(observed.labelled.keys() - wanted.keys())
    return [*actions, *(LabelNode(node=node, value=None) for node in stale)]


def _go(inputs: SetInputs, phase: SetPhase, *actions: CacheAction, after: float = 0.0) -> SetDecision:
    """Into another phase, whose first pass follows at once unless there is something to wait for."""
    record = replace(inputs.record, phase=phase, complaint=None, delays=0)
    return SetDecision(record=record, actions=actions, wake_after=after)


def _stay(inputs: SetInputs, complaint: Complaint | None, pause: float | None, *actions: CacheAction) -> SetDecision:
    return SetDecision(
        record=replace(inputs.record, complaint=complaint),
        actions=actions,
        events=complained(inputs.record.complaint, complaint),
        wake_after=pause,
    )


_STEPS: Final = {
    SetPhase.BOUND: _bound,
    SetPhase.MOUNT: _mount,
    SetPhase.SYNCING: _syncing,
    SetPhase.SYNC_FAILED: _sync_failed,
    SetPhase.PARTIAL_READY: _partial_ready,
    SetPhase.READY: _ready,
}

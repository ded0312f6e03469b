"""The reconcile of a SampleSet.

(new) ─▶ Bound ─▶ Mount ─▶ PartialReady ◀─▶ Ready
│   ▲
▼   │ success, or new options
Syncing ─▶ SyncFailed
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from app.base.backoff import ExponentialBackoff
from app.domain.cache.reconcile.cache_status import node_caches
from app.domain.cache.reconcile.events import (
    already_exists,
    complaint_events,
    creation_event,
    failure_event,
    not_created,
    success_event,
)
from app.domain.cache.reconcile.progress import overall
from app.domain.cache.reconcile.removal import remove, renew
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
from app.domain.status.warnings import known_warnings

STORAGE: Final = (SetPart.PV, SetPart.PVC)
SERVERS: Final = (SetPart.TOKEN, SetPart.SERVICE, SetPart.RUNTIME)
# Pauses in seconds. They are upstream's, except where upstream would wait forever.
_SECRET: Final = 30.0  # Secrets are not watched: that would need the permission to read all of them
_CREATED: Final = 1.0  # the volume controller binds a volume within seconds
_STARTING: Final = 10.0  # for created servers to start
_NO_WARNING: Final = 5.0  # events are not watched
_WARNING: Final = ExponentialBackoff(first=10.0, longest=300.0)
_BLOCKED: Final = 30.0  # what the cluster refuses is unlikely to change soon
_SYNC: Final = 5.0  # a runtime server cannot notify the controller
_MOUNT: Final = 10.0
_PARTIAL: Final = 10.0
_READY: Final = ExponentialBackoff(first=5.0, longest=30.0)  # a file system may show new files late
_READY_IN_USE: Final = 60.0
_SYNC_FAILURE: Final = failure_event(JobType.SYNC, "").reason


def reconcile_set(inputs: SetInputs) -> SetDecision:
    """Reconcile a SampleSet: create missing objects first, then do what its phase requires."""
    if inputs.deleted:
        return remove(inputs)
    record, events = _with_observed(inputs)
    updated = replace(inputs, record=record)
    if inputs.observed.is_shared:
        return renew(updated)
    blocked, missing = _objects(updated)
    if record.phase is SetPhase.NONE:
        decision = _unbound(updated, blocked, missing)
    elif missing or blocked is not None:
        decision = _incomplete(updated, blocked, missing)
    else:
        decision = _STEPS[record.phase](updated)
    return replace(decision, events=(*events, *decision.events))


def _with_observed(inputs: SetInputs) -> tuple[SetRecord, tuple[SampleEvent, ...]]:
    """Return the record with the observed objects and cache status, and an event for each new object."""
    record, observed = inputs.record, inputs.observed
    sync = observed.sync if record.phase is SetPhase.SYNCING else None
    new = [r for r in SetPart if observed.of(r) is Found.OURS and r not in record.made]
    lost = {r for r in record.made if observed.of(r) is not Found.OURS}
    record = replace(
        record,
        made=(record.made | set(new)) - lost,
        runtime=observed.runtime,
        # The last status stays while a server does not answer.
        cache=observed.cache or record.cache,
        nodes=node_caches(observed.running, observed.reports),
        warnings=known_warnings(record.warnings, observed.warnings),
        sync_progress=overall([sync.progress]) if sync and sync.status is ServerJobState.RUNNING else None,
    )
    return record, tuple(creation_event(part) for part in new)


def _objects(inputs: SetInputs) -> tuple[Complaint | None, list[SetPart]]:
    """Return what prevents the creation of the objects that the phase needs, and which of them are missing."""
    needed = STORAGE if inputs.record.phase is SetPhase.NONE else (*STORAGE, *SERVERS)
    observed = inputs.observed
    foreign = [part for part in needed if observed.of(part) is Found.FOREIGN]
    missing = [part for part in needed if observed.of(part) is Found.ABSENT]
    # A foreign object is reported first: the set can never use its name, whatever else is missing.
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
    delays = _WARNING.count(inputs.record.delays)
    decision = _stay(inputs, observed.warning, _WARNING.delay(delays))
    return replace(decision, record=replace(decision.record, delays=delays))


def _mount(inputs: SetInputs) -> SetDecision:
    record, observed = inputs.record, inputs.observed
    if not inputs.spec.no_sync and not record.sync_job:
        if observed.sync_refusal is not None:
            return _stay(inputs, observed.sync_refusal, _SECRET)
        if not observed.digest:
            return _stay(inputs, None, _MOUNT)
        # The name is recorded before the options are posted. After a crash the same name is posted again, and a server
        # that has it already does not run it twice.
        posted = replace(record, sync_job=inputs.fresh_name, digest=observed.digest, synced=False)
        return _go(
            replace(inputs, record=posted),
            SetPhase.SYNCING,
            PostOptions(job=posted.sync_job, servers=(0,)),
            after=_SYNC,
        )
    return _stay(inputs, observed.warning, _MOUNT) if observed.cache is None else _go(inputs, SetPhase.PARTIAL_READY)


def _syncing(inputs: SetInputs) -> SetDecision:
    record, answer = inputs.record, inputs.observed.sync
    status = answer.status if answer else ServerJobState.UNKNOWN
    if status is ServerJobState.SUCCESS:
        # The figures of this reconcile may be older than the end of the sync. Later ones are not: the server updates
        # them before it shows the result.
        ended = replace(record, cache=None)
        after = replace(ended, sync_job="", digest="") if _is_outdated(inputs) else replace(ended, synced=True)
        return replace(_go(replace(inputs, record=after), SetPhase.MOUNT), events=(success_event(JobType.SYNC),))
    if status is ServerJobState.FAIL:
        decision, event = (
            _go(inputs, SetPhase.SYNC_FAILED),
            failure_event(JobType.SYNC, answer.message if answer else ""),
        )
        failure = replace(decision.record, complaint=Complaint(reason=event.reason, message=event.message))
        return replace(decision, record=failure, events=(event,))
    # A restarted pod has lost the options.
    if status is ServerJobState.NOT_POSTED:
        return _stay(inputs, None, _SYNC, PostOptions(job=record.sync_job, servers=(0,)))
    return _stay(inputs, inputs.observed.warning, _SYNC)


def _is_outdated(inputs: SetInputs) -> bool:
    """Return whether the spec has changed since the sync was posted. The source is frozen once `synced` is set."""
    now = inputs.observed.digest
    return bool(now) and now != inputs.record.digest and not inputs.spec.no_sync


def _sync_failed(inputs: SetInputs) -> SetDecision:
    record, observed = inputs.record, inputs.observed
    # An empty digest means that the options are not known now, not that they have changed.
    if inputs.spec.no_sync:
        return _go(inputs, SetPhase.MOUNT)
    if observed.digest and observed.digest != record.digest:
        return _go(replace(inputs, record=replace(record, sync_job="", digest="")), SetPhase.MOUNT)
    before = record.complaint
    why = before if before is not None and before.reason == _SYNC_FAILURE else None
    return _stay(inputs, observed.sync_refusal or why, _SECRET)


def _partial_ready(inputs: SetInputs) -> SetDecision:
    if _is_complete(inputs):
        return _go(inputs, SetPhase.READY, *_labelling(inputs.observed))
    return _stay(inputs, inputs.observed.warning, _PARTIAL, *_labelling(inputs.observed), *_scaling(inputs))


def _ready(inputs: SetInputs) -> SetDecision:
    if not _is_complete(inputs):
        return _go(inputs, SetPhase.PARTIAL_READY, *_labelling(inputs.observed), *_scaling(inputs))
    cache, delays = inputs.record.cache, _READY.count(inputs.record.delays)
    pause: float | None = _READY.delay(delays)
    if cache is not None and cache.is_whole and pause == _READY.longest:
        pause = _READY_IN_USE if inputs.observed.in_use else None
    decision = _stay(inputs, None, pause, *_labelling(inputs.observed))
    return replace(decision, record=replace(decision.record, delays=delays))


def _is_complete(inputs: SetInputs) -> bool:
    """Return whether as many servers as wanted are ready, each on a node of its own."""
    runtime, wanted = inputs.observed.runtime, inputs.spec.partitions
    # Fewer nodes than servers: a second server on a node would count the same cache again.
    return wanted == runtime.spec_replicas == runtime.ready_replicas == len(inputs.observed.nodes)


def _scaling(inputs: SetInputs) -> list[CacheAction]:
    wanted = inputs.spec.partitions
    return [] if inputs.observed.runtime.spec_replicas == wanted else [Scale(replicas=wanted)]


def _labelling(observed: SetObserved) -> list[CacheAction]:
    """Return the actions that put the label on exactly the nodes with a running server."""
    wanted: Mapping[str, str] = observed.nodes
    actions: list[CacheAction] = [
        LabelNode(node=node, value=pod) for node, pod in sorted(wanted.items()) if observed.labelled.get(node) != pod
    ]
    stale = sorted(observed.labelled.keys() - wanted.keys())
    return [*actions, *(LabelNode(node=node, value=None) for node in stale)]


def _go(inputs: SetInputs, phase: SetPhase, *actions: CacheAction, after: float = 0.0) -> SetDecision:
    """Enter another phase, and reconcile again after some seconds, or at once by default."""
    record = replace(inputs.record, phase=phase, complaint=None, delays=0)
    return SetDecision(record=record, actions=actions, wake_after=after)


def _stay(inputs: SetInputs, complaint: Complaint | None, pause: float | None, *actions: CacheAction) -> SetDecision:
    """Stay in the phase, with or without a complaint, and reconcile again after the pause."""
    return SetDecision(
        record=replace(inputs.record, complaint=complaint),
        actions=actions,
        events=complaint_events(inputs.record.complaint, complaint),
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

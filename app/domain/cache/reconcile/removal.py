"""The removal of a SampleSet, in upstream's order.

    node labels -> runtime -> pods of the runtime -> Service and token -> claim -> volume -> gone

Every reconcile starts with the first of these that still exists. An object that somebody else deleted is skipped.
"""

from dataclasses import replace
from typing import Final

from app.domain.cache.reconcile.events import complaint_events
from app.domain.cache.reconcile.values import CacheAction, Complaint, Delete, LabelNode, SetDecision, SetInputs
from app.domain.cache.vocabulary import Found, RemovalStage, SetPart, SetPhase

_PAUSE: Final = 5.0  # seconds
# The objects of these stages usually vanish at once, so the next reconcile comes soon.
_SHORT_PAUSE: Final = 1.0
_QUICK: Final = frozenset({RemovalStage.NODE_LABELS, RemovalStage.SERVICE, RemovalStage.VOLUME})
_BY_STAGE: Final = (
    (RemovalStage.SERVICE, (SetPart.SERVICE, SetPart.TOKEN)),
    (RemovalStage.CLAIM, (SetPart.PVC,)),
    (RemovalStage.VOLUME, (SetPart.PV,)),
)
# After this many reconciles that still find the claim, the set reports why.
_PATIENCE: Final = 3
_IN_USE: Final = Complaint(
    reason="ClaimInUse",
    message="a pod, even an ended one, still mounts the claim, so the cluster keeps it: delete the jobs that mount it",
)

_SHARED: Final = (
    "the set is older than directories that only one set can use: its objects are replaced, and its data stays in the "
    "storage"
)
_SHARED_IN_USE: Final = f"{_SHARED}; this waits for the end of all pods that mount the claim"


def remove(inputs: SetInputs) -> SetDecision:
    """Do the next stage of the removal. Objects that do not belong to the set stay."""
    stage, actions = _next_stage(inputs)
    waited = min(inputs.record.delays + 1, _PATIENCE) if stage is inputs.record.stage else 0
    complaint = _IN_USE if stage is RemovalStage.CLAIM and waited == _PATIENCE else None
    pause = _SHORT_PAUSE if stage in _QUICK and inputs.record.stage is not stage else _PAUSE
    # The servers are not asked any more, and clear their caches before they stop.
    before = replace(inputs.record, nodes=(), sync_progress=None)
    return SetDecision(
        record=replace(before, stage=stage, complaint=complaint, delays=waited, runtime=inputs.observed.runtime),
        actions=actions,
        events=complaint_events(inputs.record.complaint, complaint),
        wake_after=None if stage is RemovalStage.GONE else pause,
        gone=stage is RemovalStage.GONE,
    )


def renew(inputs: SetInputs) -> SetDecision:
    """Do the next stage of the replacement of a set's objects, in the order of a removal.

    An earlier version gave sets directories that a set of another namespace could name, and a volume keeps its
    directories for ever. Once the volume is gone, the set gets new objects. A synced set is not synced again.
    """
    stage, actions = _next_stage(inputs)
    message = _SHARED_IN_USE if stage is RemovalStage.CLAIM else _SHARED
    complaint = Complaint(reason="CacheDirShared", message=message)
    record = replace(
        inputs.record, phase=SetPhase.NONE, complaint=complaint, cache=None, nodes=(), sync_progress=None, delays=0
    )
    if not record.synced:
        record = replace(record, sync_job="", digest="")
    events = complaint_events(inputs.record.complaint, complaint)
    return SetDecision(record=record, actions=actions, events=events, wake_after=_PAUSE)


def _next_stage(inputs: SetInputs) -> tuple[RemovalStage, tuple[CacheAction, ...]]:
    observed = inputs.observed
    # The labels go first: no training job should be scheduled to a cache that is about to be cleared.
    if observed.labelled:
        return RemovalStage.NODE_LABELS, tuple(LabelNode(node=node, value=None) for node in sorted(observed.labelled))
    if observed.of(SetPart.RUNTIME) is Found.OURS:
        return RemovalStage.RUNTIME, (Delete(part=SetPart.RUNTIME),)
    # The pods clear their caches and mount the claim, so the claim must outlive them.
    if observed.pods:
        return RemovalStage.PODS, ()
    for stage, parts in _BY_STAGE:
        left = [part for part in parts if observed.of(part) is Found.OURS]
        if left:
            return stage, tuple(Delete(part=part) for part in left)
    return RemovalStage.GONE, ()

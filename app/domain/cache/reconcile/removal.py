"""A set's removal, in upstream's order; each pass looks at what is left, so that a lost namespace holds nothing up."""

from dataclasses import replace
from typing import Final

from app.domain.cache.reconcile.events import complained
from app.domain.cache.reconcile.values import Action, Complaint, Delete, LabelNode, SetDecision, SetInputs
from app.domain.cache.vocabulary import Found, Resource, Stage

_PAUSE: Final = 5.0
# What goes at once, as a rule, and is watched by nobody.
_SHORT_PAUSE: Final = 1.0
_QUICK: Final = frozenset({Stage.NODE_LABELS, Stage.SERVICE, Stage.VOLUME})
_BY_STAGE: Final = (
    (Stage.SERVICE, (Resource.SERVICE, Resource.TOKEN)),
    (Stage.CLAIM, (Resource.PVC,)),
    (Stage.VOLUME, (Resource.PV,)),
)
# Passes that a claim may take to go; its own change wakes the first of them.
_PATIENCE: Final = 3
_IN_USE: Final = Complaint(
    reason="ClaimInUse",
    message="the cluster keeps the claim while a pod names it, also one that has ended: delete the jobs that mount it",
)


def remove(inputs: SetInputs) -> SetDecision:
    """What is somebody else's stays, whatever its name."""
    stage, actions = _next(inputs)
    waited = min(inputs.record.delays + 1, _PATIENCE) if stage is inputs.record.stage else 0
    complaint = _IN_USE if stage is Stage.CLAIM and waited == _PATIENCE else None
    pause = _SHORT_PAUSE if stage in _QUICK and inputs.record.stage is not stage else _PAUSE
    return SetDecision(
        record=replace(inputs.record, stage=stage, complaint=complaint, delays=waited),
        actions=actions,
        events=complained(inputs.record.complaint, complaint),
        wake_after=None if stage is Stage.GONE else pause,
        gone=stage is Stage.GONE,
    )


def _next(inputs: SetInputs) -> tuple[Stage, tuple[Action, ...]]:
    observed = inputs.observed
    if observed.labelled:
        return Stage.NODE_LABELS, tuple(LabelNode(node=node, value=None) for node in sorted(observed.labelled))
    if observed.of(Resource.RUNTIME) is Found.OURS:
        return Stage.RUNTIME, (Delete(resource=Resource.RUNTIME),)
    if observed.pods:
        return Stage.PODS, ()
    for stage, resources in _BY_STAGE:
        left = [resource for resource in resources if observed.of(resource) is Found.OURS]
        if left:
            return stage, tuple(Delete(resource=resource) for resource in left)
    return Stage.GONE, ()

"""What a pass over a set needs to know beside what is watched."""

from typing import Final

from app.domain.cache.reconcile.sample_sets import STORAGE
from app.domain.cache.reconcile.values import SetObserved, SetRecord
from app.domain.cache.specs.sample_set import SampleSetSpec
from app.domain.cache.vocabulary import Found, Need, SetPhase

_BY_PHASE: Final = {
    SetPhase.NONE: frozenset[Need](),
    SetPhase.BOUND: frozenset({Need.WARNING}),
    SetPhase.MOUNT: frozenset({Need.CACHE}),
    SetPhase.SYNCING: frozenset({Need.SYNC_RESULT, Need.SYNC_OPTIONS, Need.CACHE}),
    SetPhase.SYNC_FAILED: frozenset({Need.SYNC_OPTIONS}),
    SetPhase.PARTIAL_READY: frozenset({Need.CACHE}),
    SetPhase.READY: frozenset({Need.CACHE}),
}


def needs(spec: SampleSetSpec, record: SetRecord, watched: SetObserved, *, deleted: bool) -> frozenset[Need]:
    """Of an observation that has nothing yet but what is watched."""
    if deleted:
        return frozenset()
    wanted = _BY_PHASE[record.phase]
    if record.phase is SetPhase.MOUNT and not spec.no_sync and not record.sync_job:
        wanted = frozenset({Need.SYNC_OPTIONS})
    if any(watched.of(part) is Found.ABSENT for part in STORAGE):
        wanted |= {Need.SECRET}
    return wanted

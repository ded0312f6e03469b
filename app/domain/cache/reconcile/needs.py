"""What the reconcile of a set needs besides its objects. Each takes a request, so only those that matter are read."""

from typing import Final

from app.domain.cache.reconcile.sample_sets import STORAGE
from app.domain.cache.reconcile.values import SetObserved, SetRecord
from app.domain.cache.vocabulary import Found, Need, SetPhase
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec

_BY_PHASE: Final = {
    SetPhase.NONE: frozenset[Need](),
    SetPhase.BOUND: frozenset({Need.WARNING}),
    SetPhase.MOUNT: frozenset({Need.CACHE, Need.WARNING}),
    SetPhase.SYNCING: frozenset({Need.SYNC_RESULT, Need.SYNC_OPTIONS, Need.CACHE, Need.WARNING}),
    SetPhase.SYNC_FAILED: frozenset({Need.SYNC_OPTIONS}),
    SetPhase.PARTIAL_READY: frozenset({Need.CACHE, Need.WARNING}),
    SetPhase.READY: frozenset({Need.CACHE}),
}


def needs(spec: SampleSetSpec, record: SetRecord, observed: SetObserved, *, deleted: bool) -> frozenset[Need]:
    """Return the needs of a set in this state. The observation has only the set's objects so far."""
    if deleted:
        return frozenset()
    wanted = _BY_PHASE[record.phase]
    # Before its sync, a set only posts the options of the sync, and needs no cache status.
    if record.phase is SetPhase.MOUNT and not spec.no_sync and not record.sync_job:
        wanted = frozenset({Need.SYNC_OPTIONS})
    if any(observed.of(part) is Found.ABSENT for part in STORAGE):
        wanted |= {Need.SECRET}
    return wanted

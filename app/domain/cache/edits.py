"""What a set's or job's progress forbids to edit, beside what its kind does."""

from collections.abc import Sequence

from app.domain.cache.reconcile.values import JobRecord, SetRecord
from app.domain.cache.specs.sample_set import SampleSetSpec
from app.domain.cache.vocabulary import SampleJobPhase, SetPhase
from app.domain.errors import Conflict, FieldError

_IN_USE = frozenset({SetPhase.PARTIAL_READY, SetPhase.READY})


def frozen_changes(record: SetRecord, stored: SampleSetSpec, new: SampleSetSpec) -> Sequence[FieldError]:
    """Where the data came from is history once it has been synced."""
    if not record.synced and record.phase not in _IN_USE:
        return []
    changed = {"source": stored.source != new.source, "noSync": stored.no_sync != new.no_sync}
    detail = "may not be changed once the data has been synced"
    return [
        FieldError(
            pointer=f"/spec/{name}", code="Immutable", detail=detail, accepted="changes to partitions, secretRef"
        )
        for name, differs in changed.items()
        if differs
    ]


def require_editable(record: JobRecord) -> None:
    """Raises Conflict for a job that has succeeded."""
    if record.phase is SampleJobPhase.SUCCEEDED:
        raise Conflict("a SampleJob cannot be updated after succeeded", code="AlreadyFinished")

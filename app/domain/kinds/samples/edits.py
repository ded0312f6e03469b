"""Edits of a SampleSet or a SampleJob that its state forbids, besides those that its kind forbids."""

from collections.abc import Sequence

from app.domain.cache.reconcile.values import JobRecord, SetRecord
from app.domain.cache.vocabulary import SampleJobPhase, SetPhase
from app.domain.errors import Conflict, FieldError
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec

# Phases in which training jobs may read the data.
_IN_USE = frozenset({SetPhase.PARTIAL_READY, SetPhase.READY})


def frozen_changes(record: SetRecord, stored: SampleSetSpec, new: SampleSetSpec) -> Sequence[FieldError]:
    """Return errors for changes of the source after the data has been synced, since it would not be synced again."""
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
    """Raise Conflict if the job has succeeded."""
    if record.phase is SampleJobPhase.SUCCEEDED:
        raise Conflict("a SampleJob cannot be updated after succeeded", code="AlreadyFinished")

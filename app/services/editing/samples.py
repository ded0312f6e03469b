"""Edits and deletions of SampleSets and SampleJobs."""

from datetime import datetime

from typing_extensions import override

from app.base.clock import Clock
from app.db.objects.resources import Check
from app.db.postgres.engine import Database
from app.db.samples import edits
from app.db.samples.edits import SampleEdit
from app.db.samples.rows import SampleRow, storage_of
from app.domain.access.actors import Actor
from app.domain.cache.limits import CacheLimits
from app.domain.errors import Conflict, InvalidManifest
from app.domain.kinds.sample_kind import SampleKind
from app.domain.plan import Manifest
from app.domain.redaction import is_redacted
from app.domain.sample_drafts import SampleDraft, make_draft
from app.services.editing.objects import Editor, EditRequest
from app.services.hints import Hint


class SampleEditor(Editor[SampleRow, SampleEdit]):
    """Edits and deletes objects of one sample kind."""

    def __init__(self, kind: SampleKind, db: Database, clock: Clock, hint: Hint, limits: CacheLimits) -> None:
        super().__init__(db, storage_of(kind), kind.name, clock, hint)
        self._limits = limits

    @override
    def require_editable(self, row: SampleRow) -> None:
        edits.refuse_leaving(row)
        row.of_kind.require_editable(row.record)

    @override
    def revise(self, row: SampleRow, document: Manifest, *, administers: bool) -> SampleDraft:
        draft = _make_next_draft(row, document, self._limits)
        if row.is_settled and is_redacted(draft.manifest):
            raise Conflict(f"values of the {row.kind} were redacted: edit it with its whole manifest", code="Redacted")
        return draft

    @override
    def edit_of(
        self, row: SampleRow, edited: SampleDraft, posted: Manifest | None, request: EditRequest[SampleRow]
    ) -> SampleEdit:
        return SampleEdit(
            manifest=edited.manifest,
            posted=posted,
            labels=edited.labels,
            set_name=edited.set_name,
            actor=request.actor,
            at=self._clock.now(),
            expected_version=row.version,
        )

    @override
    async def store(self, row: SampleRow, edit: SampleEdit) -> SampleRow:
        return await edits.edit(self._db, row.uid, edit)

    @override
    async def request_deletion(
        self, row: SampleRow, *, actor: Actor, at: datetime, reason: str, precondition: Check
    ) -> SampleRow:
        """Request the deletion. A SampleJob has no objects in the cluster and is gone at once."""
        return await edits.request_deletion(self._db, row.uid, actor=actor, at=at, reason=reason, check=precondition)

    @override
    def is_carried_out(self, row: SampleRow) -> bool:
        return row.observed_generation >= row.generation


def _make_next_draft(row: SampleRow, document: Manifest, limits: CacheLimits) -> SampleDraft:
    """Return the document as the next version of the stored object.

    Raises:
        InvalidManifest: the document is not valid, or changes a field that is immutable, or immutable in this phase.
    """
    kind = row.of_kind
    stored = kind.current(row.manifest)
    # The name never changes. `str` draws an empty suffix.
    draft = make_draft(kind, kind.current(document), row.namespace, kind.limits_of_edit(stored, limits), str)
    errors = [*kind.changes(stored, draft.manifest), *kind.forbidden_changes(row.record, stored, draft.manifest)]
    if errors:
        raise InvalidManifest("the edit changes immutable fields", code="ImmutableField", errors=errors)
    return draft

"""Submission, edits and reads of kinds without pods."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

from typing_extensions import override

from app.base.clock import Clock
from app.base.offload import is_large, offloaded_if_large
from app.db.jobs.evidence import EventPlace
from app.db.objects.submission import Answer, NameTaken, New
from app.db.postgres.engine import Database
from app.db.samples import controller as sample_controller
from app.db.samples import edits
from app.db.samples.controller import MountingJob
from app.db.samples.edits import SampleEdit
from app.db.samples.rows import SampleRow, sample_events, storage_of
from app.domain.access.actors import Actor
from app.domain.cache.limits import CacheLimits
from app.domain.errors import Conflict
from app.domain.kinds.changes import is_respecified
from app.domain.kinds.sample_kind import SampleKind
from app.domain.plan import Manifest
from app.domain.redaction import is_redacted
from app.domain.reservations.name_ranges import NameKind, NameRange
from app.services.editing.objects import Editor, EditRequest, Precondition
from app.services.editing.sample_drafts import SampleDraft, make_draft, make_next_draft
from app.services.limits.turns import Turns
from app.services.reading.objects import Reader, ResourceEvent
from app.services.submitting.objects import Hint, Prepared, SubmitRequest, Submitter
from app.telemetry import trace_context

# Transactions that submissions of one kind have open at once. A batch submits 100 objects together, and would otherwise
# take every connection from all other requests.
_MAX_TRANSACTIONS: Final = 2


PreparedSample: TypeAlias = Prepared[New[SampleRow]]


class SampleSubmitter(Submitter[PreparedSample, New[SampleRow], SampleRow]):
    """Submits objects of one kind without pods. `limits` apply to each namespace."""

    def __init__(
        self,
        kind: SampleKind,
        db: Database,
        clock: Clock,
        hint: Hint,
        limits: CacheLimits,
        randomness: random.Random,
    ) -> None:
        super().__init__(kind.name, clock, hint, randomness)
        self._kind = kind
        self._db = db
        self._limits = limits
        self._transactions = asyncio.Semaphore(_MAX_TRANSACTIONS)

    @override
    async def prepare(self, document: Manifest, request: SubmitRequest) -> PreparedSample:
        return await offloaded_if_large(document, self._prepare, document, request)

    def _prepare(self, document: Manifest, request: SubmitRequest) -> PreparedSample:
        draft = make_draft(self._kind, document, request.namespace, self._limits, self.suffix)
        record = self._kind.record()
        row = SampleRow(
            uid=self.draw_uid(),
            namespace=request.namespace,
            name=draft.name,
            kind=self._kind.name,
            api_version=draft.manifest["apiVersion"],
            labels=draft.labels,
            manifest=draft.manifest,
            set_name=draft.set_name,
            created_at=self._clock.now(),
            created_by=request.actor.name,
            created_by_id=request.actor.id,
            phase=record.phase,
            record=record,
            **trace_context.columns_of(trace_context.current()),
        )
        names = [NameRange(NameKind.JOB, draft.name)]
        new = New(row=row, names=names, posted_manifest=request.posted or document)
        return Prepared(new=new, generated=draft.generated, is_slow=is_large(draft.manifest))

    @override
    def remedy(self, taken: NameTaken) -> str:
        """An object without pods keeps its name, even after its end, until it is deleted and nothing of it is left."""
        if taken.leaving:
            return "another name, or wait until nothing of that one is left"
        return "another name, or delete that one"

    @override
    async def store(self, news: Sequence[New[SampleRow]]) -> Mapping[int, Answer]:
        async with self._transactions:
            return await edits.submit(self._db, news)


class SampleEditor(Editor[SampleRow, SampleEdit]):
    """Edits and deletes objects of one kind without pods."""

    def __init__(self, kind: SampleKind, db: Database, clock: Clock, hint: Hint, limits: CacheLimits) -> None:
        super().__init__(db, storage_of(kind), kind.name, clock, hint)
        self._limits = limits

    @override
    def require_editable(self, row: SampleRow) -> None:
        edits.refuse_leaving(row)
        row.of_kind.require_editable(row.record)

    @override
    def revise(self, row: SampleRow, document: Manifest, *, administers: bool) -> SampleDraft:
        draft = make_next_draft(row, document, self._limits)
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
            is_respecified=is_respecified(row.manifest, edited.manifest),
            expected_version=row.version,
        )

    @override
    async def store(self, row: SampleRow, edit: SampleEdit) -> SampleRow:
        return await edits.edit(self._db, row.uid, edit)

    @override
    async def remove(
        self, row: SampleRow, *, actor: Actor, at: datetime, reason: str, precondition: Precondition
    ) -> SampleRow:
        """Request the deletion. A SampleJob has no objects in the cluster and is gone at once."""
        return await edits.request_deletion(self._db, row.uid, actor=actor, at=at, reason=reason, check=precondition)

    @override
    def is_carried_out(self, row: SampleRow) -> bool:
        return row.observed_generation >= row.generation

    @override
    def is_gone(self, row: SampleRow) -> bool:
        return row.gone_at is not None


class SampleReader(Reader[SampleRow]):
    """Reads objects of one kind without pods."""

    def __init__(self, kind: SampleKind, db: Database, lists: Turns | None = None) -> None:
        super().__init__(db, storage_of(kind), kind.name, lists)

    @override
    async def events(self, row: SampleRow, after: EventPlace | None, limit: int) -> list[ResourceEvent]:
        """Return the events that the controller recorded, oldest first."""
        seq = 0 if after is None else after.number
        return [
            ResourceEvent(
                place=EventPlace(number=event.seq),
                source="controller",
                type=event.type,
                reason=event.reason,
                message=event.message,
                first_seen_at=event.at,
                last_seen_at=event.at,
            )
            for event in await sample_events(self._db, row.uid, after_seq=seq, limit=limit)
        ]

    async def mounting_jobs(self, row: SampleRow) -> list[MountingJob]:
        """Return the jobs that mount the PersistentVolumeClaim of a SampleSet, which has the set's name."""
        return await sample_controller.jobs_mounting(self._db, row.namespace, row.name)

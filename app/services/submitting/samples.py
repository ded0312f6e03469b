"""Submission of SampleSets and SampleJobs: a transaction for each request."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from typing_extensions import override

from app.base.clock import Clock
from app.base.offload import is_large, offload_if_large
from app.db.objects.submission import Answer, NameTaken, New
from app.db.postgres.engine import Database
from app.db.samples import edits
from app.db.samples.rows import SampleRow
from app.domain.cache.limits import CacheLimits
from app.domain.kinds.sample_kind import SampleKind
from app.domain.plan import Manifest
from app.domain.reservations.name_ranges import NameKind, NameRange
from app.domain.sample_drafts import make_draft
from app.services.hints import Hint
from app.services.submitting.objects import Prepared, SubmitRequest, Submitter
from app.telemetry import trace_context

# Transactions that submissions of one kind have open at once. A batch submits 100 objects together, and would otherwise
# take every connection from all other requests.
_MAX_TRANSACTIONS: Final = 2


PreparedSample: TypeAlias = Prepared[New[SampleRow]]


class SampleSubmitter(Submitter[PreparedSample, New[SampleRow]]):
    """Submits objects of one sample kind. `limits` say what their manifests may refer to."""

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
        return await offload_if_large(document, self._prepare, document, request)

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
        """An object keeps its name, even after its end, until it is deleted and nothing of it is left."""
        if taken.leaving:
            return "another name, or wait until nothing of that one is left"
        return "another name, or delete that one"

    @override
    async def store(self, news: Sequence[New[SampleRow]]) -> Mapping[int, Answer]:
        async with self._transactions:
            return await edits.submit(self._db, news)

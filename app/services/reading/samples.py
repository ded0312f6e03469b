"""Reads of SampleSets and SampleJobs."""

from typing_extensions import override

from app.db.objects.events import EventPlace
from app.db.postgres.engine import Database
from app.db.samples import controller as sample_controller
from app.db.samples.controller import MountingJob
from app.db.samples.rows import SampleRow, sample_events, storage_of
from app.domain.kinds.sample_kind import SampleKind
from app.services.limits.turns import Turns
from app.services.reading.objects import Reader, ResourceEvent


class SampleReader(Reader[SampleRow]):
    """Reads objects of one sample kind."""

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

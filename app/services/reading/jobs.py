"""Reads of jobs, with their replicas, attempts, scale records and events."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from typing_extensions import override

from app.base.offload import offload
from app.db import kept_logs
from app.db.jobs import attempts, evidence, reads, replicas, scale_records
from app.db.jobs.controller import read_sizes
from app.db.jobs.evidence import StoredEvent
from app.db.jobs.replicas import ReplicaFilter, StoredReplica
from app.db.jobs.rows import STORED_JOBS, JobRow, JobSummary
from app.db.kept_logs import CountedLog
from app.db.objects.events import EventPlace
from app.db.postgres.engine import Database
from app.domain.manifests.gangs import with_gang_apis
from app.domain.plan import JobPlan, Rank
from app.domain.planning import Planner
from app.domain.status.records import Attempt, JobPendingReason, Replica, ScaleRecord
from app.domain.vocabulary import ReplicaPhase
from app.services.limits.turns import Turns, room_for
from app.services.reading.gang_apis import GangApis, unknown
from app.services.reading.manifests import PAGE_BYTES, ManifestPage, page_of
from app.services.reading.objects import DECODED, Address, Reader, ResourceEvent

# Bytes of a replica with a few ended attempts, as records and as text.
_REPLICA_BYTES: Final = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedRows:
    """The rows of a job that its native status needs, beside the row of the job itself.

    `attempts` are ended attempts with task and rank. They may be omitted for a job without restarts and reschedules.
    """

    replicas: Sequence[Replica] = ()
    attempts: Sequence[tuple[str, int, Attempt]] = ()
    scale_records: Sequence[ScaleRecord] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaHistory:
    """A replica and its ended attempts."""

    stored: StoredReplica
    ended: Sequence[Attempt]

    @property
    def attempts(self) -> Sequence[Attempt]:
        """All attempts, the current one last.

        An attempt that has just ended is both among the ended ones and the current one.
        """
        current = self.stored.replica.attempt
        return [*(attempt for attempt in self.ended if attempt.number != current.number), current]


class JobReader(Reader[JobRow]):
    """Reads jobs: what every resource has, and replicas, attempts and scale records, which only jobs have."""

    def __init__(
        self, db: Database, planner: Planner, lists: Turns | None = None, gang_apis: GangApis = unknown
    ) -> None:
        super().__init__(db, STORED_JOBS, "job", lists)
        self._planner = planner
        self._gang_apis = gang_apis

    async def summaries(self, uids: Collection[UUID]) -> Mapping[UUID, JobSummary]:
        """Return the existing jobs among these, without their manifests, in one statement."""
        return await reads.summaries(self._db, uids)

    async def summary(self, uid: UUID) -> JobSummary:
        """Return the job without its manifest. Raise as `row` if there is none."""
        return await self._present((await self.summaries([uid])).get(uid), uid)

    async def whole(self, uid: UUID) -> tuple[JobRow, RelatedRows]:
        """Return a job with its related rows, read in one snapshot. Raise as `row` if there is none."""
        size = await self._present((await read_sizes(self._db, [uid])).get(uid), uid)
        await room_for(size.manifest_bytes * DECODED + size.replicas * _REPLICA_BYTES)
        found = await self._present(await reads.whole(self._db, uid), uid)
        return found.row, RelatedRows(
            replicas=[stored.replica for stored in found.replicas],
            attempts=found.attempts,
            scale_records=found.scale_records,
        )

    async def read_related(self, rows: Sequence[JobRow]) -> Mapping[UUID, RelatedRows]:
        """Return the related rows of several jobs. The number of statements does not depend on the number of jobs."""
        if not rows:
            return {}
        found = await replicas.of_many(self._db, [row.uid for row in rows])
        # The native status of other jobs needs no ended attempts.
        changed = [row.uid for row in rows if row.status.restarts or row.status.reschedules]
        ended = await attempts.of_many(self._db, changed) if changed else {}
        scaled = [row.uid for row in rows if row.scale_count]
        records = await scale_records.last_of(self._db, scaled, reads.SHOWN_SCALE_RECORDS) if scaled else {}
        return {
            row.uid: RelatedRows(
                replicas=[stored.replica for stored in found.get(row.uid, ())],
                attempts=ended.get(row.uid, ()),
                scale_records=records.get(row.uid, ()),
            )
            for row in rows
        }

    async def replicas(self, uid: UUID, where: ReplicaFilter, *, start: int, limit: int) -> list[ReplicaHistory]:
        """Return at most `limit` replicas with their ended attempts, by task and rank, from the index `start`.

        The replicas of a job that the controller has not reconciled yet are those of its plan.
        """
        await room_for(limit * _REPLICA_BYTES)
        found = await replicas.page(self._db, uid, where, start=start, limit=limit)
        if not found:
            row = await self.row(Address(uid=uid))  # an unknown job is an error, not an empty page
            if not row.status.observed_generation:
                plan = await offload(self._plan, row)
                return _replicas_of_plan(plan, where)[start : start + limit]
            # The controller may have stored the replicas between the two reads.
            found = await replicas.page(self._db, uid, where, start=start, limit=limit)
        ended: dict[Rank, list[Attempt]] = {}
        for task, rank, attempt in await attempts.of_replicas(self._db, uid, [stored.replica.key for stored in found]):
            ended.setdefault(Rank(task, rank), []).append(attempt)
        return [ReplicaHistory(stored=stored, ended=ended.get(stored.replica.key, ())) for stored in found]

    async def task_sizes(self, uid: UUID) -> dict[str, int]:
        """Return the number of stored replicas of each task that has any, in the order of their names."""
        return await replicas.task_sizes(self._db, uid)

    async def kept_logs(
        self, uid: UUID, task: str | None, rank: int | None, start: int, limit: int
    ) -> list[CountedLog]:
        return await kept_logs.of_job(self._db, uid, task, rank, start=start, limit=limit)

    async def scale_records(self, uid: UUID, after: int, limit: int) -> list[ScaleRecord]:
        return await scale_records.page(self._db, uid, after_seq=after, limit=limit)

    @override
    async def events(self, row: JobRow, after: EventPlace | None, limit: int) -> list[ResourceEvent]:
        """Return the current pending reasons, then the stored Events of ended attempts, newest attempt first."""
        found: list[ResourceEvent] = []
        if after is None or after.attempt == 0:
            pending = sorted(map(_pending_event, row.status.pending_reasons), key=lambda event: event.place)
            found = [event for event in pending if after is None or event.place > after][:limit]
            # The previous page ended within the pending reasons, so the stored Events follow from their beginning.
            after = None
        if len(found) < limit:
            kept = await evidence.events_page(self._db, row.uid, after, limit - len(found))
            found += map(_event_from, kept)
        return found

    async def manifests(self, job: JobRow, *, start: int, size: int, task: str | None) -> ManifestPage:
        """Return a page of the Kubernetes objects of the job, with first attempts of its replicas."""
        await room_for(2 * PAGE_BYTES)
        plan = with_gang_apis(await offload(self._plan, job), await self._gang_apis())
        return await page_of(plan, start=start, size=size, task=task)

    def _plan(self, job: JobRow) -> JobPlan:
        accepted = self._planner.read(job.manifest, job.uid, job.generation)
        resumed = job.status.resumes > 0
        return self._planner.plan(accepted, str(job.uid), generation=job.generation, resumed=resumed)


def _replicas_of_plan(plan: JobPlan, where: ReplicaFilter) -> list[ReplicaHistory]:
    """Return the matching replicas of a plan as they are before the first reconcile, by task and rank."""
    if where.phases and ReplicaPhase.CREATING not in where.phases:
        return []
    found = [
        StoredReplica(replica=Replica(key=key, attempt=Attempt(number=1)), pod_name=plan.pod_name(key))
        for key in sorted(plan.replicas)
        if where.task in (None, key.task) and where.rank in (None, key.rank)
    ]
    return [ReplicaHistory(stored=stored, ended=()) for stored in found]


def _pending_event(reason: JobPendingReason) -> ResourceEvent:
    # Reasons come, go and change their counts between two pages, so the place depends only on what identifies a reason.
    text = f"{reason.started}:{reason.message}"
    digest = hashlib.blake2b(text.encode(), digest_size=7).digest()
    return ResourceEvent(
        place=EventPlace(task=reason.code, number=int.from_bytes(digest, "big")),
        source="pending",
        type="Warning",
        reason=reason.code,
        message=reason.message,
        count=reason.count,
        first_seen_at=reason.since,
        last_seen_at=reason.since,
    )


def _event_from(stored: StoredEvent) -> ResourceEvent:
    place, event = stored
    return ResourceEvent(
        place=place,
        source="evidence",
        type=str(event.get("type") or "Normal"),
        reason=str(event.get("reason") or ""),
        message=str(event.get("message") or ""),
        count=int(event.get("count") or 1),
        key=Rank(place.task, place.rank),
        attempt=place.attempt,
        last_seen_at=_moment(event.get("lastSeen")),
    )


def _moment(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) and text else None

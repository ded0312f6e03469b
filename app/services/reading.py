"""What is stored of jobs, for those who may see it."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from app.db import attempts, evidence, history, jobs, replicas, scale_records
from app.db.engine import Database
from app.db.history import HistoryRow
from app.db.job_rows import JobRow, JobSummary
from app.db.jobs import Cursor, JobFilter, JobPage, JobVersion
from app.db.replicas import ReplicaFilter
from app.db.rows import StoredReplica
from app.domain.errors import NotFound
from app.domain.plan import JobPlan, Rank
from app.domain.planning import Planner
from app.domain.status.records import Attempt, JobPendingReason, Replica, ScaleRecord
from app.domain.vocabulary import Evidence
from app.services.manifests import ManifestPage, page_of

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A job by its uid, or by namespace and name: then the live one, else the newest."""

    uid: UUID | None = None
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belongings:
    """What a job's native status is made of beside its row.

    `attempts` are those that have ended; of a job that was never restarted nor rescheduled they may be left out.
    """

    replicas: Sequence[Replica] = ()
    attempts: Sequence[tuple[str, int, Attempt]] = ()
    scale_records: Sequence[ScaleRecord] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStory:
    """A replica and those of its attempts that have ended."""

    stored: StoredReplica
    ended: Sequence[Attempt]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEvent:
    """What the cluster said about a pod."""

    source: str
    reason: str
    message: str
    type: str = "Normal"
    count: int = 1
    key: Rank | None = None
    attempt: int | None = None
    first_seen_at: datetime | None = None
    last_seen_at: datetime | None = None


class Reading:
    """Reads only; a few statements each, none of them in a transaction of its own but where it says so."""

    def __init__(self, db: Database, planner: Planner) -> None:
        self._db = db
        self._planner = planner

    async def job(self, address: Address) -> JobRow:
        """The job.

        Raises:
            NotFound: there is none.
        """
        if address.uid is not None:
            found = await jobs.get(self._db, address.uid)
        else:
            found = await jobs.find(self._db, address.namespace, address.name)
        return _present(found)

    async def version(self, address: Address) -> JobVersion:
        """Which version of which job it is now: one small statement."""
        if address.uid is not None:
            found = await jobs.get_version(self._db, address.uid)
        else:
            found = await jobs.find_version(self._db, address.namespace, address.name)
        return _present(found)

    async def page(self, where: JobFilter, after: Cursor | None, limit: int) -> JobPage:
        return await jobs.page(self._db, where, after=after, limit=limit)

    async def summaries(self, uids: Collection[UUID]) -> Mapping[UUID, JobSummary]:
        """Those of the jobs that exist, in one statement and without their manifests."""
        return await jobs.summaries(self._db, uids)

    async def whole(self, uid: UUID) -> tuple[JobRow, Belongings]:
        """A job with its belongings, of one moment."""
        found = _present(await jobs.whole(self._db, uid))
        return found.row, Belongings(
            replicas=[stored.replica for stored in found.replicas],
            attempts=found.attempts,
            scale_records=found.scale_records,
        )

    async def belongings_of(self, rows: Sequence[JobRow]) -> Mapping[UUID, Belongings]:
        """Of several jobs, in as many statements as for one."""
        if not rows:
            return {}
        found = await replicas.of_many(self._db, [row.uid for row in rows])
        changed = [row.uid for row in rows if row.status.restarts or row.status.reschedules]
        ended = await attempts.of_many(self._db, changed) if changed else {}
        scaled = [row.uid for row in rows if row.scale_count]
        records = await scale_records.last_of(self._db, scaled, jobs.SHOWN_SCALE_RECORDS) if scaled else {}
        return {
            row.uid: Belongings(
                replicas=[stored.replica for stored in found.get(row.uid, ())],
                attempts=ended.get(row.uid, ()),
                scale_records=records.get(row.uid, ()),
            )
            for row in rows
        }

    async def replicas(self, uid: UUID, where: ReplicaFilter, *, start: int, limit: int) -> list[ReplicaStory]:
        """Replicas with their stories, in order of task and rank, from the given place on."""
        found = await replicas.page(self._db, uid, where, start=start, limit=limit)
        if not found:
            _present(await jobs.get_version(self._db, uid))
        ended: dict[Rank, list[Attempt]] = {}
        for task, rank, attempt in await attempts.of_replicas(self._db, uid, [one.replica.key for one in found]):
            ended.setdefault(Rank(task, rank), []).append(attempt)
        return [ReplicaStory(stored=stored, ended=ended.get(stored.replica.key, ())) for stored in found]

    async def tasks(self, uid: UUID) -> list[str]:
        """The tasks of which replicas are stored, in order of name."""
        return await replicas.tasks(self._db, uid)

    async def history(self, uid: UUID, after: int, limit: int) -> list[HistoryRow]:
        return await history.page(self._db, uid, after_seq=after, limit=limit)

    async def scale_records(self, uid: UUID, after: int, limit: int) -> list[ScaleRecord]:
        return await scale_records.page(self._db, uid, after_seq=after, limit=limit)

    async def events(self, job: JobRow) -> list[PodEvent]:
        """Why replicas are pending now, then what was kept of ended attempts, the newest attempt first."""
        found = [_pending_event(reason) for reason in job.status.pending_reasons]
        ended = [item for item in await attempts.of(self._db, job.uid) if item[2].evidence is Evidence.CAPTURED]
        for task, rank, attempt in sorted(ended, key=lambda item: (-item[2].number, item[0], item[1])):
            key = Rank(task, rank)
            kept = await evidence.pod_events(self._db, job.uid, key, attempt.number)
            found += [_kept_event(event, key, attempt.number) for event in kept]
        return found

    async def manifests(self, job: JobRow, *, start: int, size: int, task: str | None) -> ManifestPage:
        """The objects of a first attempt, as the manifest stands now."""
        plan = await asyncio.to_thread(self._plan, job)
        return await page_of(plan, start=start, size=size, task=task)

    def _plan(self, job: JobRow) -> JobPlan:
        accepted = self._planner.read(job.manifest, job.uid, job.generation)
        resumed = job.status.resumes > 0
        return self._planner.plan(accepted, str(job.uid), generation=job.generation, resumed=resumed)


def _present(found: _T | None) -> _T:
    if found is None:
        raise NotFound("there is no such job")
    return found


def _pending_event(reason: JobPendingReason) -> PodEvent:
    return PodEvent(
        source="pending",
        type="Warning",
        reason=reason.code,
        message=reason.message,
        count=reason.count,
        first_seen_at=reason.since,
        last_seen_at=reason.since,
    )


def _kept_event(event: Mapping[str, Any], key: Rank, attempt: int) -> PodEvent:
    return PodEvent(
        source="evidence",
        type=str(event.get("type") or "Normal"),
        reason=str(event.get("reason") or ""),
        message=str(event.get("message") or ""),
        count=int(event.get("count") or 1),
        key=key,
        attempt=attempt,
        last_seen_at=_moment(event.get("lastSeen")),
    )


def _moment(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) and text else None

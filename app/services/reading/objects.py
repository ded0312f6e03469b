"""Reads of the stored objects of any resource. The caller has checked that the principal may see them."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from typing_extensions import override

from app.base.offload import offloaded
from app.db.jobs import attempts, evidence, reads, replicas, scale_records
from app.db.jobs.controller import sizes
from app.db.jobs.evidence import EventPlace, StoredEvent
from app.db.jobs.replicas import ReplicaFilter, StoredReplica
from app.db.jobs.rows import STORED_JOBS, JobRow, JobSummary
from app.db.lists import counting, pages
from app.db.lists.facets import Facets
from app.db.lists.pages import Page
from app.db.objects import resources
from app.db.objects.history import HistoryRow
from app.db.objects.resources import Row, RowKey, RowVersion, Stored
from app.db.postgres.engine import Database
from app.db.postgres.group_read import GroupRead
from app.db.postgres.queries import Cursor
from app.domain.errors import no_such
from app.domain.listing import Criteria
from app.domain.plan import JobPlan, Manifest, Rank
from app.domain.planning import Planner
from app.domain.status.records import Attempt, JobPendingReason, Replica, ScaleRecord
from app.domain.vocabulary import ReplicaPhase
from app.fairness.share import caller
from app.services.limits.turns import Turns, room_for
from app.services.reading.manifests import PAGE_BYTES, ManifestPage, page_of

_T = TypeVar("_T")
DECODED: Final = 12
"""Decoded JSON of many short strings takes about twelve times as much memory as its text."""
# Bytes of documents that need no room: their objects take less than a megabyte.
_SMALL_BYTES: Final = 64 * 1024
_LISTS_AT_ONCE: Final = 3
_MAX_WAITING: Final = 10_000
# Seconds after which a client hears that the process is overloaded.
_LIST_WAIT: Final = 10.0
# Bytes of a page of whole objects and of the replicas of one large job on it, as records and as text.
_PAGE_BYTES: Final = 24 * 1024 * 1024
# Bytes of a summary, a row of history or an event with its message, as a record and as text.
_ITEM_BYTES: Final = 4 * 1024
# Bytes of a replica with a few ended attempts, as records and as text.
_REPLICA_BYTES: Final = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Identifies an object by its uid, or by namespace and name.

    A name means the object that has it, or else the newest one that had it.
    """

    uid: UUID | None = None
    namespace: str = ""
    name: str = ""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceEvent:
    """An event of an object, in the view of the API.

    Args:
        source: `pending` for a current pending reason, `evidence` for an Event of an ended pod, `controller` for an
            event that the controller recorded.
        key: the replica, for events of pods.
        attempt: the number of the attempt, for events of pods.
    """

    place: EventPlace
    source: str
    reason: str
    message: str
    type: str = "Normal"
    count: int = 1
    key: Rank | None = None
    attempt: int | None = None
    first_seen_at: datetime | None = None
    last_seen_at: datetime | None = None


def list_turns() -> Turns:
    """Return the turns in which callers read lists, so that most connections of the pool remain for other requests."""
    return Turns("lists", at_once=_LISTS_AT_ONCE, max_waiting=_MAX_WAITING, max_seconds=_LIST_WAIT)


class Reader(ABC, Generic[Row]):
    """Reads objects of one resource. `what` is the word for an object in messages."""

    def __init__(self, db: Database, where: Stored[Row], what: str, lists: Turns | None = None) -> None:
        self._db = db
        self._where = where
        self._what = what
        self._lists = lists or list_turns()
        self._versions = GroupRead[RowKey, RowVersion](
            partial(resources.versions, db, where), max_wait=db.acquire_timeout
        )

    async def run(self) -> None:
        """Answer the calls of `version` until cancelled. While it does not run, they wait."""
        await self._versions.run()

    async def read_posted(self, uid: UUID) -> Manifest | None:
        """Return the manifest of the object as it was posted. None if that is not known."""
        await _room_for_document(await resources.read_posted_size(self._db, self._where, uid))
        return await resources.read_posted(self._db, self._where, uid)

    async def row(self, address: Address) -> Row:
        """Return the object. Raise NotFound if there is none."""
        uid = await self._with_room(address)
        return self._present(await resources.get(self._db, self._where, uid))

    async def _with_room(self, address: Address) -> UUID:
        """Return the uid of the object, whose documents this request then has the memory for. Raise NotFound."""
        key = address.uid or (address.namespace, address.name)
        version = self._present((await resources.versions(self._db, self._where, [key])).get(key))
        await _room_for_document((await resources.sizes(self._db, self._where, [version.uid])).get(version.uid, 0))
        return version.uid

    async def version(self, address: Address) -> RowVersion:
        """Return uid and version of the object, which is cheaper than its row. Raise NotFound if there is none.

        The version is at least as new as everything that was committed before the call.
        """
        return self._present(await self._versions.get(address.uid or (address.namespace, address.name)))

    async def page(self, where: Criteria, after: Cursor | None, limit: int) -> Page[Row]:
        """Return at most `limit` objects after the cursor, newest first. A short page may have a successor."""
        await room_for(_PAGE_BYTES)
        async with self._lists.turn(caller()):
            return await pages.page(self._db, self._where, where, after=after, limit=limit)

    async def newest(self, where: Criteria, limit: int) -> list[Row]:
        """Return the newest objects that match, at most `limit`, however many rows must be examined for them."""
        found = await self.page(where, None, limit)
        rows = found.rows
        while found.next is not None and len(rows) < limit:
            found = await self.page(where, found.next, limit - len(rows))
            rows = [*rows, *found.rows]
        return rows

    async def summary_page(self, where: Criteria, after: Cursor | None, limit: int) -> Page[Any]:
        """Return the page that `page` returns, with summaries in place of rows."""
        await room_for(limit * _ITEM_BYTES)
        async with self._lists.turn(caller()):
            return await pages.summary_page(self._db, self._where, where, after=after, limit=limit)

    async def facets(self, where: Criteria) -> Facets:
        """Count the objects that match the filter, whatever their kinds and phases."""
        async with self._lists.turn(caller()):
            return await counting.facets(self._db, self._where, where)

    async def history(self, uid: UUID, after: int, limit: int) -> list[HistoryRow]:
        """Return at most `limit` history rows with a number above `after`, oldest first."""
        await room_for(limit * _ITEM_BYTES)
        return await resources.history(self._db, self._where, uid, after_seq=after, limit=limit)

    @abstractmethod
    async def events(self, row: Row, after: EventPlace | None, limit: int) -> list[ResourceEvent]:
        """Return at most `limit` events of the object: those after a place, or the first ones."""

    def _present(self, found: _T | None) -> _T:
        if found is None:
            raise no_such(self._what)
        return found


class JobReader(Reader[JobRow]):
    """Reads jobs: what every resource has, and replicas, attempts and scale records, which only jobs have."""

    def __init__(self, db: Database, planner: Planner, lists: Turns | None = None) -> None:
        super().__init__(db, STORED_JOBS, "job", lists)
        self._planner = planner

    async def summaries(self, uids: Collection[UUID]) -> Mapping[UUID, JobSummary]:
        """Return the existing jobs among these, without their manifests, in one statement."""
        return await reads.summaries(self._db, uids)

    async def summary(self, address: Address) -> JobSummary:
        """Return the job without its manifest. Raise NotFound if there is none."""
        uid = address.uid or (await self.version(address)).uid
        return self._present((await self.summaries([uid])).get(uid))

    async def whole(self, uid: UUID) -> tuple[JobRow, RelatedRows]:
        """Return a job with its related rows, read in one snapshot. Raise NotFound if there is none."""
        size = self._present((await sizes(self._db, [uid])).get(uid))
        await room_for(size.manifest_bytes * DECODED + size.replicas * _REPLICA_BYTES)
        found = self._present(await reads.whole(self._db, uid))
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
                plan = await offloaded(self._plan, row)
                return _plan_replicas(plan, where)[start : start + limit]
            # The controller may have stored the replicas between the two reads.
            found = await replicas.page(self._db, uid, where, start=start, limit=limit)
        ended: dict[Rank, list[Attempt]] = {}
        for task, rank, attempt in await attempts.of_replicas(self._db, uid, [stored.replica.key for stored in found]):
            ended.setdefault(Rank(task, rank), []).append(attempt)
        return [ReplicaHistory(stored=stored, ended=ended.get(stored.replica.key, ())) for stored in found]

    async def task_sizes(self, uid: UUID) -> dict[str, int]:
        """Return the number of stored replicas of each task that has any, in the order of their names."""
        return await replicas.task_sizes(self._db, uid)

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
        plan = await offloaded(self._plan, job)
        return await page_of(plan, start=start, size=size, task=task)

    def _plan(self, job: JobRow) -> JobPlan:
        accepted = self._planner.read(job.manifest, job.uid, job.generation)
        resumed = job.status.resumes > 0
        return self._planner.plan(accepted, str(job.uid), generation=job.generation, resumed=resumed)


async def _room_for_document(size: int) -> None:
    if size > _SMALL_BYTES:
        await room_for(size * DECODED)


def _plan_replicas(plan: JobPlan, where: ReplicaFilter) -> list[ReplicaHistory]:
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

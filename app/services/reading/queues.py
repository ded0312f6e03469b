"""Reads the queues that the controller has recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.db import queues
from app.db.postgres.engine import Database
from app.db.queues import KueueRecord, QueueKey, QueueRow
from app.db.reservations.pod_room import read_room
from app.domain.access.namespaces import NamespaceSet
from app.domain.errors import NotFound
from app.domain.plan import JobPlan
from app.domain.queueing.requests import DEFAULT_QUEUE, requested_queue
from app.domain.queueing.room import Room, RoomOutcome, room_for_job
from app.domain.queueing.workload import pod_sets
from app.domain.reservations.pod_limits import PodLimits, PodRoom
from app.domain.status.observed import KueueState
from app.domain.vocabulary import PendingCode
from app.services.limits.turns import room_for
from app.services.reading.freshness import Freshness, FreshnessReader

JOBS_IN_LIST: Final = 10
"""The pending jobs of each queue that a list shows."""
# Bytes of a queue with its jobs, as records and as text.
_LISTED_BYTES: Final = 16 * 1024
_WHOLE_BYTES: Final = 128 * 1024
_NOT_RECORDED: Final = KueueRecord(
    state=KueueState.UNKNOWN, message="no controller has recorded yet whether the cluster serves Kueue"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadQueues:
    """Queues, what is known of Kueue, and how old both are."""

    rows: Sequence[QueueRow]
    kueue: KueueRecord
    freshness: Freshness


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCheck:
    """Whether the queue of a new job has room for it, as it was known at the time of `freshness`."""

    queue: str | None
    room: Room
    freshness: Freshness


class QueueReader:
    """Reads queues from PostgreSQL. It does not call the cluster."""

    def __init__(self, db: Database, freshness: FreshnessReader, limits: PodLimits) -> None:
        self._db = db
        self._freshness = freshness
        self._limits = limits

    async def page(self, namespaces: NamespaceSet, after: QueueKey, limit: int) -> ReadQueues:
        """Return at most `limit` queues after a key, each with its first pending jobs."""
        await room_for(limit * _LISTED_BYTES)
        return await self._read(await queues.page(self._db, namespaces, after, limit=limit, jobs=JOBS_IN_LIST))

    async def get(self, key: QueueKey) -> ReadQueues:
        """Return one queue.

        Raises:
            NotFound: no such queue is recorded. The message says so if the reason may be Kueue.
        """
        await room_for(_WHOLE_BYTES)
        row = (await queues.read(self._db, key.namespace, [key.name])).get(key.name)
        found = await self._read([] if row is None else [row])
        if row is None:
            reason = f": {found.kueue.message}" if found.kueue.message else ""
            raise NotFound(f"there is no such queue in this namespace{reason}")
        return found

    async def check(self, namespace: str, plans: Sequence[JobPlan]) -> list[QueueCheck | None]:
        """Return whether each of these jobs of a namespace, in this order, would find room now.

        None for a job without a queue that fits within the limits of live pods.
        """
        names = {DEFAULT_QUEUE, *(plan.queue.name for plan in plans if plan.queue is not None)}
        await room_for(len(names) * _WHOLE_BYTES)
        rows = await queues.read(self._db, namespace, names)
        found = await self._read(list(rows.values()))
        async with self._db.read() as connection:
            pods = await read_room(connection, [namespace], self._limits)
        return [_check(plan, rows, found, _pod_room(pods, namespace, plan)) for plan in plans]

    async def _read(self, rows: Sequence[QueueRow]) -> ReadQueues:
        kueue = await queues.read_kueue(self._db) or _NOT_RECORDED
        return ReadQueues(rows=rows, kueue=kueue, freshness=await self._freshness.read_of(kueue.observed_at))


def _pod_room(room: PodRoom, namespace: str, plan: JobPlan) -> Room | None:
    """Count the pods of a job as a submission does. Return None if they fit within the limits of live pods."""
    over = room.take(namespace, plan.size)
    if over is None:
        return None
    if room.enqueue(over):
        return Room(outcome=RoomOutcome.WOULD_WAIT, code=PendingCode.WAITING_FOR_POD_LIMIT, detail=over.detail)
    return Room(outcome=RoomOutcome.WOULD_BE_REFUSED, detail=over.detail)


def _check(plan: JobPlan, rows: Mapping[str, QueueRow], found: ReadQueues, pod_room: Room | None) -> QueueCheck | None:
    name = requested_queue(plan, rows) or (DEFAULT_QUEUE if DEFAULT_QUEUE in rows else None)
    if pod_room is not None:
        # Before the queue: a job without room has no Workload.
        return QueueCheck(queue=name, room=pod_room, freshness=found.freshness)
    # A job that names no queue waits only until it is known whether its namespace has a default one.
    if name is None and found.kueue.state is not KueueState.UNKNOWN:
        return None
    return QueueCheck(queue=name, room=_room(plan, name, rows, found.kueue), freshness=found.freshness)


def _room(plan: JobPlan, name: str | None, rows: Mapping[str, QueueRow], kueue: KueueRecord) -> Room:
    match kueue.state:
        case KueueState.ABSENT:
            return Room(outcome=RoomOutcome.NO_KUEUE, detail=kueue.message)
        case KueueState.UNKNOWN:
            return Room(outcome=RoomOutcome.UNKNOWN, detail=kueue.message or "the queues are not listed yet")
        case KueueState.DENIED:
            detail = f"jobgate may not read Kueue's objects: {kueue.message}"
            return Room(outcome=RoomOutcome.WOULD_WAIT, code=PendingCode.WAITING_FOR_KUEUE, detail=detail)
        case KueueState.LISTED:
            row = rows.get(name or DEFAULT_QUEUE)
            if row is not None:
                return room_for_job(pod_sets(plan), row.status)
            detail = f"LocalQueue {name} doesn't exist"
            return Room(outcome=RoomOutcome.WOULD_WAIT, code=PendingCode.QUEUE_MISSING, detail=detail)

"""Reads the queues that the controller has recorded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.db import queues
from app.db.postgres.engine import Database
from app.db.queues import KueueRecord, QueueKey, QueueRow
from app.domain.access.namespaces import NamespaceSet
from app.domain.errors import NotFound
from app.domain.status.observed import KueueState
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


class QueueReader:
    """Reads queues from PostgreSQL. It does not call the cluster."""

    def __init__(self, db: Database, freshness: FreshnessReader) -> None:
        self._db = db
        self._freshness = freshness

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
        row = await queues.read(self._db, key)
        found = await self._read([] if row is None else [row])
        if row is None:
            reason = f": {found.kueue.message}" if found.kueue.message else ""
            raise NotFound(f"there is no such queue in this namespace{reason}")
        return found

    async def _read(self, rows: Sequence[QueueRow]) -> ReadQueues:
        kueue = await queues.read_kueue(self._db) or _NOT_RECORDED
        return ReadQueues(rows=rows, kueue=kueue, freshness=await self._freshness.read_of(kueue.observed_at))

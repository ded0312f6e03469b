"""Who wanted how many replicas, when, and what became of it. `job_edits.edit` writes the requests."""

from datetime import datetime
from uuid import UUID

from app.db import leases
from app.db.engine import Database
from app.db.leases import Lease
from app.domain.status.records import ScaleRecord

_PAGE = """
SELECT seq, task, from_replicas, to_replicas, actor, reason, requested_at, settled_at, outcome
FROM scale_records WHERE job_uid = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""
_SETTLE = "UPDATE scale_records SET settled_at = $2, outcome = $3 WHERE job_uid = $1 AND settled_at IS NULL"


async def page(db: Database, uid: UUID, *, after_seq: int = 0, limit: int) -> list[ScaleRecord]:
    """The oldest first."""
    async with db.read() as connection:
        return [ScaleRecord(**row) for row in await connection.fetch(_PAGE, uid, after_seq, limit)]


async def settle(db: Database, lease: Lease, uid: UUID, at: datetime, outcome: str) -> None:
    """Close what is open of a job.

    Raises:
        LeaseLost: another controller is at work.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        await connection.execute(_SETTLE, uid, at, outcome)

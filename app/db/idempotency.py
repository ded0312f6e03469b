"""Answers that are kept for repeated requests. `submit` writes them, in the transaction of the job itself."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.db.engine import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    fingerprint: str
    uid: UUID
    answer: bytes


_FIND = "SELECT fingerprint, job_uid AS uid, answer FROM idempotency_keys WHERE scope = $1 AND key = $2"
_FORGET = """
DELETE FROM idempotency_keys WHERE (scope, key) IN (
    SELECT scope, key FROM idempotency_keys WHERE created_at < $1 ORDER BY created_at LIMIT $2)
"""


async def find(db: Database, scope: str, key: str) -> StoredAnswer | None:
    """The kept answer, to replay before anything else is done for the request."""
    async with db.read() as connection:
        row = await connection.fetchrow(_FIND, scope, key)
    return None if row is None else StoredAnswer(**row)


async def forget(db: Database, before: datetime, limit: int) -> int:
    """Drop keys that are older; returns how many, for the janitor to come again while it is `limit`."""
    async with db.read() as connection:
        status: str = await connection.execute(_FORGET, before, limit)
    return int(status.rpartition(" ")[2])

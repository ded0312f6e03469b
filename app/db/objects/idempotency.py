"""Stored answers for repeated requests, written in the transaction that stores the result of the request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias
from uuid import UUID

import asyncpg

from app.db.postgres.columns import Columns, columns, record_columns
from app.db.postgres.engine import Connection, Database
from app.db.postgres.errors import KeyContended, is_of_row
from app.models.requests import idempotency_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """`answer` is the response body for a repetition with the same fingerprint."""

    scope: str
    key: str
    fingerprint: str
    answer: bytes

    @property
    def id(self) -> "KeyId":
        return self.scope, self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The same request succeeded before with this answer."""

    uid: UUID
    answer: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyConflict:
    """The key was used for another request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInFlight:
    """Another request with this key is in progress."""


KeyId: TypeAlias = tuple[str, str]  # scope, key


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    fingerprint: str
    uid: UUID
    answer: bytes

    def replay_or_conflict(self, key: IdempotencyKey) -> Replayed | KeyConflict:
        """Replay the answer to a request with the same fingerprint, and refuse any other request with this key."""
        if self.fingerprint != key.fingerprint:
            return KeyConflict()
        return Replayed(uid=self.uid, answer=self.answer)


_KEY: Final = record_columns(idempotency_keys, IdempotencyKey)
_CLAIMED: Final = _KEY + columns(idempotency_keys, "job_uid", "created_at")
# ON CONFLICT waits for a transaction that holds the key: it commits, and the key is in use, or it rolls back, and the
# key is free. A wait for it beyond the lock timeout is KeyContended: that request is still running. A wait for the
# table, which a migration may have locked, says nothing about the key.
_CLAIM: Final = f"""
INSERT INTO idempotency_keys ({_CLAIMED}) SELECT {_CLAIMED} FROM {_CLAIMED.rows("w")} ORDER BY scope, key
ON CONFLICT DO NOTHING RETURNING scope, key
"""  # noqa: S608  constants
_READ: Final = """
SELECT k.scope, k.key, k.fingerprint, k.job_uid AS uid, k.answer
FROM unnest($1::text[], $2::text[]) AS w(scope, key) JOIN idempotency_keys AS k USING (scope, key)
"""
_ANY_KNOWN: Final = """
SELECT EXISTS (
    SELECT FROM unnest($1::text[], $2::text[]) AS w(scope, key) JOIN idempotency_keys AS k USING (scope, key)
)
"""
_RELEASE: Final = (
    "DELETE FROM idempotency_keys USING unnest($1::text[], $2::text[]) AS w(s, k) WHERE scope = s AND key = k"
)
# By the time too, which is that of the object and has an index.
_FORGET_OBJECTS: Final = """
DELETE FROM idempotency_keys AS k USING unnest($1::uuid[], $2::timestamptz[]) AS o(uid, created_at)
WHERE k.created_at = o.created_at AND k.job_uid = o.uid
"""
_FORGET = """
DELETE FROM idempotency_keys WHERE (scope, key) IN (
    SELECT scope, key FROM idempotency_keys WHERE created_at < $1 ORDER BY created_at LIMIT $2)
"""


async def claim(
    connection: Connection, keys: Sequence[tuple[IdempotencyKey, UUID, datetime]]
) -> Mapping[KeyId, StoredAnswer | None]:
    """Reserve the keys, each for the object with this uid and this creation time.

    Keys are inserted in sorted order, so that two transactions with the same keys cannot deadlock. Returns the keys
    that other requests used, with their answers. The answer is None if the other request released the key meanwhile.

    Raises:
        KeyContended: another transaction has held one of the keys for too long.
    """
    if not keys:
        return {}
    rows = [(*_KEY.values(key), uid, at) for key, uid, at in keys]
    try:
        claimed = await connection.fetch(_CLAIM, *Columns.arguments(rows))
    except asyncpg.LockNotAvailableError as error:
        if is_of_row(error, idempotency_keys.name):
            raise KeyContended("another request with this idempotency key has not ended") from error
        raise
    taken = {(row["scope"], row["key"]) for row in claimed}
    refused = [key.id for key, _, _ in keys if key.id not in taken]
    if not refused:
        return {}
    found = {
        (row["scope"], row["key"]): StoredAnswer(fingerprint=row["fingerprint"], uid=row["uid"], answer=row["answer"])
        # A second statement, whose snapshot contains the keys that the first one has waited for.
        for row in await connection.fetch(_READ, *Columns.arguments(refused))
    }
    return {key_id: found.get(key_id) for key_id in refused}


async def any_known(db: Database, ids: Sequence[KeyId]) -> bool:
    """Return whether a request with one of these keys has a stored answer."""
    async with db.read() as connection:
        return bool(await connection.fetchval(_ANY_KNOWN, *Columns.arguments(ids)))


async def release(connection: Connection, keys: Sequence[IdempotencyKey]) -> None:
    """Release the keys of requests that store nothing."""
    if keys:
        await connection.execute(_RELEASE, *Columns.arguments([key.id for key in keys]))


async def forget_objects(connection: Connection, uids: Sequence[UUID], created_at: Sequence[datetime]) -> None:
    """Delete the keys of the requests that created these objects, at these times."""
    await connection.execute(_FORGET_OBJECTS, uids, created_at)


async def forget(db: Database, before: datetime, limit: int) -> int:
    """Delete at most `limit` keys created before this time, the oldest first, and return how many."""
    async with db.read() as connection:
        status: str = await connection.execute(_FORGET, before, limit)
    return int(status.rpartition(" ")[2])

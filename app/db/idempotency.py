"""Answers that are kept for repeated requests, written in the transaction of what the request stores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias
from uuid import UUID

from app.db.columns import Columns, columns, record_columns
from app.db.engine import Connection, Database
from app.models.requests import idempotency_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """`answer` is the body that a repetition with the same fingerprint gets."""

    scope: str
    key: str
    fingerprint: str
    answer: bytes

    @property
    def place(self) -> "KeyPlace":
        return self.scope, self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The same request has succeeded before; this is what it was answered."""

    uid: UUID
    answer: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyConflict:
    """The key has been used for another request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInFlight:
    """A request with this key has not been decided yet."""


KeyPlace: TypeAlias = tuple[str, str]  # scope, key


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    fingerprint: str
    uid: UUID
    answer: bytes

    def to(self, key: IdempotencyKey) -> Replayed | KeyConflict:
        """What a request with this key is answered."""
        if self.fingerprint != key.fingerprint:
            return KeyConflict()
        return Replayed(uid=self.uid, answer=self.answer)


_FIND = "SELECT fingerprint, job_uid AS uid, answer FROM idempotency_keys WHERE scope = $1 AND key = $2"
_KEY: Final = record_columns(idempotency_keys, IdempotencyKey)
_CLAIMED: Final = _KEY + columns(idempotency_keys, "job_uid", "created_at")
_CLAIM: Final = f"""
INSERT INTO idempotency_keys ({_CLAIMED}) SELECT {_CLAIMED} FROM {_CLAIMED.rows("w")} ORDER BY scope, key
ON CONFLICT DO NOTHING RETURNING scope, key
"""  # noqa: S608  constants
_READ: Final = """
SELECT k.scope, k.key, k.fingerprint, k.job_uid AS uid, k.answer
FROM unnest($1::text[], $2::text[]) AS w(scope, key) JOIN idempotency_keys AS k USING (scope, key)
"""
_GIVE_BACK: Final = (
    "DELETE FROM idempotency_keys USING unnest($1::text[], $2::text[]) AS w(s, k) WHERE scope = s AND key = k"
)
_FORGET = """
DELETE FROM idempotency_keys WHERE (scope, key) IN (
    SELECT scope, key FROM idempotency_keys WHERE created_at < $1 ORDER BY created_at LIMIT $2)
"""


async def find(db: Database, scope: str, key: str) -> StoredAnswer | None:
    """The kept answer, to replay before anything else is done for the request."""
    async with db.read() as connection:
        row = await connection.fetchrow(_FIND, scope, key)
    return None if row is None else StoredAnswer(**row)


async def claim(
    connection: Connection, keys: Sequence[tuple[IdempotencyKey, UUID, datetime]]
) -> Mapping[KeyPlace, StoredAnswer | None]:
    """Take the keys, each for the row with the uid that is submitted at the moment.

    Returns those that somebody else has, with the answer that is kept under each; None where it has just been given
    back.
    """
    if not keys:
        return {}
    rows = [(*_KEY.values(key), uid, at) for key, uid, at in keys]
    taken = {(row["scope"], row["key"]) for row in await connection.fetch(_CLAIM, *Columns.arguments(rows))}
    refused = [key.place for key, _, _ in keys if key.place not in taken]
    if not refused:
        return {}
    found = {
        (row["scope"], row["key"]): StoredAnswer(fingerprint=row["fingerprint"], uid=row["uid"], answer=row["answer"])
        for row in await connection.fetch(_READ, *Columns.arguments(refused))
    }
    return {place: found.get(place) for place in refused}


async def give_back(connection: Connection, keys: Sequence[IdempotencyKey]) -> None:
    """Free the keys of what is not stored."""
    if keys:
        await connection.execute(_GIVE_BACK, *Columns.arguments([key.place for key in keys]))


async def forget(db: Database, before: datetime, limit: int) -> int:
    """Drop keys that are older; returns how many, for the janitor to come again while it is `limit`."""
    async with db.read() as connection:
        status: str = await connection.execute(_FORGET, before, limit)
    return int(status.rpartition(" ")[2])

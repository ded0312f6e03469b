"""The entries of the feed, numbered without gaps in an order that is the same for every reader.

    transaction ─▶ row without a number ─▶ commit ─▶ publish: number what is committed ─▶ commit ─▶ readers

A number that a transaction draws while it writes can become visible out of order: the later transaction may commit
first, and a reader that has passed its number never sees the earlier one. So one publisher at a time numbers entries
after their commit, under a lock that it holds until the numbers are visible.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from app.db.postgres.columns import record_columns
from app.db.postgres.engine import Connection, Database
from app.domain.kinds.base import JOBS
from app.models.feed import job_events


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEvent:
    """`type` is a constant of `app.db.feed.changes`. `version` is that of the job or sample after the change."""

    seq: int
    at: datetime
    type: str
    namespace: str
    job_uid: UUID
    version: int
    resource: str = JOBS


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The stored entries are those from `first` to `last`. If there are none, `first` is `last` + 1."""

    epoch: int
    first: int
    last: int

    def continues(self, epoch: int, after_seq: int) -> bool:
        """Whether all entries after this position are stored, so that a reader can continue there."""
        return epoch == self.epoch and self.first - 1 <= after_seq <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPage:
    """The entries that match the filter, and `upto`, the position at which the next read starts.

    `bounds` belong to the same snapshot. The reader checks with them that no entry before the first was deleted.
    """

    events: Sequence[FeedEvent]
    upto: int
    bounds: Bounds


# Arbitrary, but the same in every version: all processes of an installation share the lock.
PUBLISHER_LOCK: Final = 4_401_973_265_120_067

# The lock ends with the transaction, so a publisher that dies does not keep it. A setting of the transaction tells the
# next statement whether the lock was free, so that the lock shares the round trip of BEGIN.
_BEGIN_LOCKED: Final = (
    f"BEGIN; SELECT set_config('jobgate.is_publisher', pg_try_advisory_xact_lock({PUBLISHER_LOCK})::text, true)"
)
_IS_PUBLISHER: Final = "current_setting('jobgate.is_publisher')::boolean"
# `batch` is materialized, so that all parts of the statement refer to the same rows. The order of insertion is kept.
_NUMBER: Final = f"""
WITH batch AS MATERIALIZED (
    SELECT id, row_number() OVER (ORDER BY id) AS number
    FROM (SELECT id FROM job_events WHERE seq IS NULL AND {_IS_PUBLISHER} ORDER BY id LIMIT $1) AS waiting
), head AS (
    UPDATE feed SET last = last + (SELECT count(*) FROM batch) WHERE EXISTS (SELECT FROM batch)
    RETURNING last - (SELECT count(*) FROM batch) AS before
), numbered AS (
    UPDATE job_events AS e SET seq = head.before + batch.number FROM batch, head
    WHERE e.id = batch.id AND e.id = ANY(ARRAY(SELECT id FROM batch))
)
SELECT CASE WHEN {_IS_PUBLISHER} THEN (SELECT count(*) FROM batch) END
"""  # noqa: S608  constants
_BOUNDS = "SELECT epoch, first, last FROM feed"
# Two subqueries, because each has a partial index: the unnumbered entries, and those after a position.
_HAS_FURTHER: Final = """
SELECT EXISTS (SELECT FROM job_events WHERE seq IS NULL AND job_uid = $1)
    OR EXISTS (SELECT FROM job_events WHERE seq > $2 AND job_uid = $1)
"""
_EVENT: Final = record_columns(job_events, FeedEvent)
# The outer join returns the bounds also without entries, and both in one snapshot. `seq > $1` excludes unnumbered ones.
_READ: Final = f"""
SELECT f.epoch, f.first, f.last, e.*
FROM feed AS f LEFT JOIN LATERAL (
    SELECT {_EVENT} FROM job_events WHERE seq > $1 ORDER BY seq LIMIT $2
) AS e ON true
ORDER BY e.seq
"""  # noqa: S608  constants
# Only entries from the beginning are deleted, up to the first that must stay, so the feed has no gap. `feed.first`
# moves in the same statement, so that a reader whose position was deleted finds out in its snapshot.
_FORGET = """
WITH oldest AS MATERIALIZED (
    SELECT e.seq, e.at < $1 AND e.seq <= f.last - $2 AS old
    FROM job_events AS e, feed AS f WHERE e.seq IS NOT NULL ORDER BY e.seq LIMIT $3
), cut AS (
    SELECT COALESCE(min(seq) FILTER (WHERE NOT old) - 1, max(seq)) AS seq FROM oldest
), moved AS (
    UPDATE feed SET first = cut.seq + 1 FROM cut WHERE cut.seq >= feed.first RETURNING 1
)
DELETE FROM job_events
WHERE seq = ANY(ARRAY(SELECT oldest.seq FROM oldest, cut WHERE oldest.seq <= cut.seq))
"""


async def publish(db: Database, limit: int = 1000) -> int | None:
    """Number at most `limit` committed entries and return how many.

    Return None if another publisher holds the lock. It may miss the newest entries, so the caller retries soon.
    """
    async with db.begin(_BEGIN_LOCKED) as connection:
        # A second statement, whose snapshot contains everything that the previous publisher committed.
        numbered: int | None = await connection.fetchval(_NUMBER, limit)
    return numbered


async def bounds(db: Database) -> Bounds:
    async with db.read() as connection:
        return Bounds(**await connection.fetchrow(_BOUNDS))


async def read(db: Database, after_seq: int, limit: int) -> FeedPage:
    """Return at most `limit` entries after `after_seq`, in order."""
    async with db.read() as connection:
        rows = await connection.fetch(_READ, after_seq, limit)
    now = Bounds(epoch=rows[0]["epoch"], first=rows[0]["first"], last=rows[0]["last"])
    events = [FeedEvent(**_EVENT.read(row)) for row in rows if row["seq"] is not None]
    # A full page may be followed by further entries. Otherwise the next read starts at the end.
    upto = events[-1].seq if len(events) == limit else max(now.last, after_seq)
    return FeedPage(events=events, upto=upto, bounds=now)


async def has_further(db: Database, job_uid: UUID, after_seq: int) -> bool:
    """Return whether the feed has entries of this object after `after_seq`, or is going to number some."""
    async with db.read() as connection:
        return bool(await connection.fetchval(_HAS_FURTHER, job_uid, after_seq))


async def forget(db: Database, *, before: datetime, keep: int, limit: int) -> int:
    """Delete at most `limit` entries older than `before` that are not among the last `keep`; return how many."""
    async with db.read() as connection:
        return await forget_oldest(connection, before=before, keep=keep, limit=limit)


async def forget_oldest(connection: Connection, *, before: datetime, keep: int, limit: int) -> int:
    """Do what `forget` does, in the transaction of the caller."""
    status: str = await connection.execute(_FORGET, before, keep, limit)
    return _rows(status)


def _rows(status: str) -> int:
    return int(status.rpartition(" ")[2])

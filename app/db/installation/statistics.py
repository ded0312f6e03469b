"""Counts jobs, feed entries and storage of the installation for metrics. The cost does not grow with ended jobs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.db.postgres.engine import Database
from app.models.jobs import job_list_condition

UNNUMBERED_LIMIT: Final = 10_000
# Reads the partial index of the jobs that still need the controller, `jobs_live`.
LIVE: Final = (
    "SELECT namespace, kind, phase, count(*) FROM jobs WHERE NOT quiet AND finished_at IS NULL GROUP BY 1, 2, 3"
)
_WITHOUT_ROOM: Final = "SELECT namespace, count(*) FROM room_waits GROUP BY namespace"
# The limit bounds the time for a backlog that no publisher reduces, such as after an outage of all processes.
_FEED: Final = f"""
SELECT last, (SELECT count(*) FROM (SELECT FROM job_events WHERE seq IS NULL LIMIT {UNNUMBERED_LIMIT}) AS waiting)
FROM feed
"""  # noqa: S608  constants
_SIZE = "SELECT pg_database_size(current_database())"
# Each is one probe of an index. The oldest history is that of the oldest job: a job and its history go together.
_OLDEST: Final = f"""
WITH oldest AS (
    SELECT uid, created_at FROM jobs WHERE {job_list_condition("jobs_newest")} ORDER BY created_at, uid LIMIT 1
)
SELECT 'jobs', (SELECT created_at FROM oldest)
UNION ALL SELECT 'status_history', (SELECT min(h.at) FROM status_history AS h, oldest WHERE h.job_uid = oldest.uid)
UNION ALL SELECT 'job_events', (SELECT at FROM job_events WHERE seq IS NOT NULL ORDER BY seq LIMIT 1)
UNION ALL SELECT 'idempotency_keys', (SELECT min(created_at) FROM idempotency_keys)
"""  # noqa: S608  constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The jobs that have not ended, by namespace, kind and phase; the last number in the feed; entries without one.

    `without_room` counts those that wait for room within the limit of live pods, by namespace.
    """

    jobs: dict[tuple[str, str, str], int]
    without_room: dict[str, int]
    feed_position: int
    unnumbered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """The size of the database in bytes, and the time of the oldest row of each table that has rows."""

    bytes: int
    oldest: dict[str, datetime]


async def counts(db: Database) -> Counts:
    async with db.read() as connection:
        jobs = await connection.fetch(LIVE)
        waiting = await connection.fetch(_WITHOUT_ROOM)
        position, unnumbered = await connection.fetchrow(_FEED)
    return Counts(
        jobs={(namespace, kind, phase): count for namespace, kind, phase, count in jobs},
        without_room=dict(waiting),
        feed_position=position,
        unnumbered=unnumbered,
    )


async def storage(db: Database) -> Storage:
    async with db.read() as connection:
        size = await connection.fetchval(_SIZE)
        rows = await connection.fetch(_OLDEST)
    return Storage(bytes=size, oldest={table: time for table, time in rows if time is not None})

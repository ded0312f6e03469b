"""The state of the installation as PostgreSQL knows it, in one statement."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.db.postgres.engine import Database

_MOST_COUNTED: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSystem:
    """The state of the installation.

    `lease_epoch` is 0 before the first controller, and `lease_expires_at` is None while no process holds the lease.
    `feed_backlog` is the number of committed feed entries that have no number yet, counted up to 100 000. `autoscales`
    is true if the autoscaler of the last run resized jobs. `clock_ahead` is how many seconds the time of the
    installation is ahead of the database's clock, and `clock_fault` says which clock is wrong; it is empty if none is.
    """

    schema_revision: str
    lease_epoch: int
    lease_expires_at: datetime | None
    feed_epoch: int
    feed_last: int
    feed_backlog: int
    autoscales: bool
    clock_ahead: float
    clock_fault: str


# The lease expires by the clock of the database.
_READ: Final = f"""
SELECT (SELECT min(version_num) FROM schema_revision) AS schema_revision,
    COALESCE(l.epoch, 0) AS lease_epoch,
    CASE WHEN l.expires_at > clock_timestamp() THEN l.expires_at END AS lease_expires_at,
    f.epoch AS feed_epoch, f.last AS feed_last,
    (SELECT count(*) FROM (SELECT FROM job_events WHERE seq IS NULL LIMIT {_MOST_COUNTED}) AS e) AS feed_backlog,
    COALESCE((SELECT enabled FROM autoscaler_runs ORDER BY id DESC LIMIT 1), false) AS autoscales,
    COALESCE(t.ahead, 0) AS clock_ahead, COALESCE(t.fault, '') AS clock_fault
FROM feed AS f LEFT JOIN leases AS l ON l.name = $1 LEFT JOIN timekeeping AS t ON true
"""  # noqa: S608  constants


async def read(db: Database, lease_name: str) -> StoredSystem:
    """Return the state. `lease_name` is that of the controller's lease."""
    async with db.read() as connection:
        return StoredSystem(**await connection.fetchrow(_READ, lease_name))

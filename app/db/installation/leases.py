"""Leases, one row for each role, and the fence that rejects writes of a former holder.

A transaction of the holder locks the row FOR KEY SHARE and checks its epoch. A takeover locks the row FOR UPDATE: it
waits for transactions that have begun, and later ones find another epoch. A renewal changes no key column, so it does
not conflict with the transactions of the holder. All times are those of the database's clock.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from app.db.postgres.engine import Connection, Database
from app.db.postgres.errors import LeaseLost

CONTROLLER: Final = "controller"
"""The name of the lease that makes one controller active."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """`ttl` is in seconds. The holder counts it from before the call that acquired or renewed the lease."""

    name: str
    holder: str
    epoch: int
    ttl: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A lease that a process holds until `expires_at` unless it renews it.

    `ttl` is its duration in seconds, or None if a process of the previous version holds it.
    """

    expires_at: datetime
    ttl: float | None


_EPOCH = "SELECT epoch FROM leases WHERE name = $1"
_HELD = "SELECT expires_at, ttl FROM leases WHERE name = $1 AND expires_at > clock_timestamp()"
# The row is expired from the beginning, so that `_LOCK` finds a row to lock.
_INTRODUCE = (
    "INSERT INTO leases (name, holder, epoch, expires_at) VALUES ($1, '', 0, '-infinity') ON CONFLICT DO NOTHING"
)
# clock_timestamp() everywhere: now() is the beginning of the transaction, which may have waited for a lock since.
_LOCK = "SELECT expires_at, expires_at > clock_timestamp() AS held FROM leases WHERE name = $1 FOR UPDATE"
_TAKE = """
UPDATE leases SET holder = $2, epoch = epoch + 1, ttl = $4, expires_at = clock_timestamp() + $3::interval,
    offered_by = NULL, offered_at = NULL
WHERE name = $1 RETURNING epoch
"""
# An expired lease is not renewed even if no other process has taken it: its holder has stopped acting.
_RENEW = """
UPDATE leases SET expires_at = clock_timestamp() + $4::interval
WHERE name = $1 AND holder = $2 AND epoch = $3 AND expires_at > clock_timestamp()
RETURNING COALESCE(offered_at > clock_timestamp() - $4::interval, false) AS offered
"""
_OUTRANK = """
UPDATE leases SET epoch = GREATEST(epoch, $4 + 1)
WHERE name = $1 AND holder = $2 AND epoch = $3 AND expires_at > clock_timestamp()
RETURNING epoch
"""
_OFFER = "UPDATE leases SET offered_by = $2, offered_at = clock_timestamp() WHERE name = $1 AND holder <> $2"
# The row stays, because the next epoch follows from its epoch.
_RELEASE = """
UPDATE leases SET expires_at = '-infinity' WHERE name = $1 AND holder = $2 AND epoch = $3
"""
# If the lock waits for a takeover, PostgreSQL checks the condition again on the new row, which has another epoch.
_FENCE = """
SELECT 1 FROM leases
WHERE name = $1 AND holder = $2 AND epoch = $3 AND expires_at > clock_timestamp() FOR KEY SHARE
"""


async def acquire(
    db: Database, name: str, holder: str, ttl: float, *, abandoned: datetime | None = None
) -> Lease | None:
    """Acquire the lease under a new epoch. Return None if another process holds it.

    A lease that expires at `abandoned` counts as expired. The caller has seen this time unchanged for the duration of
    a lease: its holder does not renew it, and the clock of the database has been set back.

    Raises:
        DatabaseContended: the last transaction of the former holder has not ended; the caller may retry.
    """
    async with db.read() as connection:
        # Read without a lock, so that candidates do not delay the holder.
        if await connection.fetchval(_HELD, name) not in (None, abandoned):
            return None
    async with db.begin() as connection:
        await connection.execute(_INTRODUCE, name)
        # Checked again under the lock, because another candidate may have been faster.
        row = await connection.fetchrow(_LOCK, name)
        if row["held"] and row["expires_at"] != abandoned:
            return None
        epoch = await connection.fetchval(_TAKE, name, holder, timedelta(seconds=ttl), ttl)
    return Lease(name=name, holder=holder, epoch=epoch, ttl=ttl)


async def holding(db: Database, name: str) -> Holding | None:
    """Return how a process holds the lease now; None if none does."""
    async with db.read() as connection:
        row = await connection.fetchrow(_HELD, name)
    return None if row is None else Holding(**row)


async def epoch(db: Database, name: str) -> int:
    """Return the epoch of the lease, held or not; 0 if no process ever held it."""
    async with db.read() as connection:
        return await connection.fetchval(_EPOCH, name) or 0


async def renew(db: Database, lease: Lease) -> bool:
    """Extend the lease by its `ttl`. Return whether another process has offered within it to take the lease over.

    Raises:
        LeaseLost: the lease has expired, or another process has acquired it.
    """
    async with db.read() as connection:
        offered: bool | None = await connection.fetchval(
            _RENEW, lease.name, lease.holder, lease.epoch, timedelta(seconds=lease.ttl)
        )
    if offered is None:
        raise _lease_lost(lease)
    return offered


async def outrank(db: Database, lease: Lease, epoch: int) -> Lease:
    """Return the lease with an epoch above this one, which a database that was restored from a backup does not know.

    Raises:
        LeaseLost: the lease has expired, or another process has acquired it.
    """
    async with db.read() as connection:
        raised: int | None = await connection.fetchval(_OUTRANK, lease.name, lease.holder, lease.epoch, epoch)
    if raised is None:
        raise _lease_lost(lease)
    return replace(lease, epoch=raised)


async def offer(db: Database, name: str, holder: str) -> None:
    """Offer the holder of the lease to take it over."""
    async with db.read() as connection:
        await connection.execute(_OFFER, name, holder)


async def release(db: Database, lease: Lease) -> None:
    """Expire the lease at once. A lease that another process has acquired is unchanged."""
    async with db.read() as connection:
        await connection.execute(_RELEASE, lease.name, lease.holder, lease.epoch)


async def fence(connection: Connection, lease: Lease) -> None:
    """Check the lease and keep it from being taken over until the transaction ends.

    This is the first statement of every transaction of a holder, except for the locks of `pod_room` in
    `app.db.reservations`.

    Raises:
        LeaseLost: the lease has expired, or another process has acquired it.
    """
    if await connection.fetchval(_FENCE, lease.name, lease.holder, lease.epoch) is None:
        raise _lease_lost(lease)


def _lease_lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"the lease {lease.name} of epoch {lease.epoch} was lost to another process or has expired")

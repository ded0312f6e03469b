"""Who may act, one row a role, and the fence that keeps a former holder's writes out.

A holder's transactions take the row FOR KEY SHARE and check their epoch; a takeover takes it FOR UPDATE, so it waits
for those that have begun, and those that begin later find another epoch. Renewal changes no key: it waits for nobody.
The clock is the database's.
"""

from dataclasses import dataclass
from datetime import timedelta

from app.db.engine import Connection, Database
from app.db.errors import LeaseLost


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """`ttl` is in seconds from the moment of the call that answered; count it from before that call."""

    name: str
    holder: str
    epoch: int
    ttl: float


_FREE = "SELECT expires_at <= clock_timestamp() FROM leases WHERE name = $1"
_INTRODUCE = (
    "INSERT INTO leases (name, holder, epoch, expires_at) VALUES ($1, '', 0, '-infinity') ON CONFLICT DO NOTHING"
)
_LOCK = "SELECT expires_at <= clock_timestamp() FROM leases WHERE name = $1 FOR UPDATE"
_TAKE = """
UPDATE leases SET holder = $2, epoch = epoch + 1, expires_at = clock_timestamp() + $3::interval
WHERE name = $1 RETURNING epoch
"""
_RENEW = """
UPDATE leases SET expires_at = clock_timestamp() + $4::interval
WHERE name = $1 AND holder = $2 AND epoch = $3 AND expires_at > clock_timestamp() RETURNING epoch
"""
_RELEASE = """
UPDATE leases SET expires_at = '-infinity' WHERE name = $1 AND holder = $2 AND epoch = $3
"""
_FENCE = """
SELECT 1 FROM leases
WHERE name = $1 AND holder = $2 AND epoch = $3 AND expires_at > clock_timestamp() FOR KEY SHARE
"""


async def acquire(db: Database, name: str, holder: str, ttl: float) -> Lease | None:
    """Take the lease if nobody holds it; None when somebody does. Every success has an epoch of its own.

    Raises:
        DatabaseContended: the former holder's last transaction has not ended yet; try again.
    """
    async with db.read() as connection:
        if await connection.fetchval(_FREE, name) is False:
            return None  # without a lock: those who wait do not stand in the holder's way
    async with db.begin() as connection:
        await connection.execute(_INTRODUCE, name)
        if not await connection.fetchval(_LOCK, name):
            return None
        epoch = await connection.fetchval(_TAKE, name, holder, timedelta(seconds=ttl))
    return Lease(name=name, holder=holder, epoch=epoch, ttl=ttl)


async def renew(db: Database, lease: Lease) -> None:
    """Hold it for another `ttl`.

    Raises:
        LeaseLost: it has run out or been taken.
    """
    async with db.read() as connection:
        renewed = await connection.fetchval(_RENEW, lease.name, lease.holder, lease.epoch, timedelta(seconds=lease.ttl))
    if renewed is None:
        raise LeaseLost(f"the lease {lease.name} of epoch {lease.epoch} is no longer ours")


async def release(db: Database, lease: Lease) -> None:
    """Let the next one have it at once; without effect when it is not ours any more."""
    async with db.read() as connection:
        await connection.execute(_RELEASE, lease.name, lease.holder, lease.epoch)


async def fence(connection: Connection, lease: Lease) -> None:
    """First statement of every transaction of a holder.

    Raises:
        LeaseLost: the transaction must not go on.
    """
    if await connection.fetchval(_FENCE, lease.name, lease.holder, lease.epoch) is None:
        raise LeaseLost(f"the lease {lease.name} of epoch {lease.epoch} is no longer ours")

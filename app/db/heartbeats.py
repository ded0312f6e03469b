"""When the controller last had contact with the cluster: what every API process answers freshness from."""

from dataclasses import dataclass
from datetime import datetime

from app.db import leases
from app.db.engine import Database
from app.db.leases import Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """`state` and `message` are the controller's words about its contact with the cluster."""

    observed_at: datetime
    epoch: int
    state: str
    message: str


_BEAT = """
INSERT INTO heartbeats (observed_at, epoch, state, message) VALUES ($1, $2, $3, $4)
ON CONFLICT (singleton) DO UPDATE
SET observed_at = excluded.observed_at, epoch = excluded.epoch, state = excluded.state, message = excluded.message
"""
_READ = "SELECT observed_at, epoch, state, message FROM heartbeats"


async def beat(db: Database, lease: Lease, observed_at: datetime, state: str, message: str = "") -> None:
    """Say how it is.

    Raises:
        LeaseLost: another controller speaks now.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        await connection.execute(_BEAT, observed_at, lease.epoch, state, message)


async def read(db: Database) -> Heartbeat | None:
    """The last beat; None when no controller has ever run."""
    async with db.read() as connection:
        row = await connection.fetchrow(_READ)
    return None if row is None else Heartbeat(**row)

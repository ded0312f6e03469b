"""When the controller last had contact with the cluster: what every API process answers freshness from."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.db import leases
from app.db.columns import record_columns
from app.db.engine import Database
from app.db.leases import Lease
from app.models.installation import heartbeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """`state` and `message` are the controller's words about its contact with the cluster."""

    observed_at: datetime
    epoch: int
    state: str
    message: str


_COLUMNS: Final = record_columns(heartbeats, Heartbeat)
_BEAT: Final = f"""
INSERT INTO heartbeats ({_COLUMNS}) SELECT {_COLUMNS} FROM {_COLUMNS.rows("w")}
ON CONFLICT (singleton) DO UPDATE SET {_COLUMNS.assigned("excluded")}
"""  # noqa: S608  constants
_READ: Final = f"SELECT {_COLUMNS} FROM heartbeats"  # noqa: S608  constants


async def beat(db: Database, lease: Lease, observed_at: datetime, state: str, message: str = "") -> None:
    """Say how it is.

    Raises:
        LeaseLost: another controller speaks now.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        heartbeat = Heartbeat(observed_at=observed_at, epoch=lease.epoch, state=state, message=message)
        await connection.execute(_BEAT, *_COLUMNS.arguments([_COLUMNS.values(heartbeat)]))


async def read(db: Database) -> Heartbeat | None:
    """The last beat; None when no controller has ever run."""
    async with db.read() as connection:
        row = await connection.fetchrow(_READ)
    return None if row is None else Heartbeat(**row)

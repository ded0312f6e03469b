"""The heartbeat: when the controller last had contact with the cluster. API processes derive freshness from it."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.postgres.columns import record_columns
from app.db.postgres.engine import Database
from app.models.installation import heartbeats


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerLoad:
    """What the controller works on, and how fast the cluster answers it.

    `queued` jobs wait to be reconciled, the first of them since `queued_since`. `call_p50` and `call_p99` are quantiles
    of the seconds that recent calls to the API server took.
    """

    queued: int = 0
    queued_since: datetime | None = None
    call_p50: float | None = None
    call_p99: float | None = None


NO_LOAD: Final = ControllerLoad()


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(ControllerLoad):
    """`state` and `message` describe the controller's contact with the cluster."""

    observed_at: datetime
    epoch: int
    state: str
    message: str


_COLUMNS: Final = record_columns(heartbeats, Heartbeat)
# The first heartbeat inserts the only row.
_BEAT: Final = f"""
INSERT INTO heartbeats ({_COLUMNS}) SELECT {_COLUMNS} FROM {_COLUMNS.rows("w")}
ON CONFLICT (singleton) DO UPDATE SET {_COLUMNS.assignments("excluded")}
"""  # noqa: S608  constants
_READ: Final = f"SELECT {_COLUMNS} FROM heartbeats"  # noqa: S608  constants


async def beat(
    db: Database,
    lease: Lease,
    observed_at: datetime,
    state: str,
    message: str = "",
    *,
    load: ControllerLoad = NO_LOAD,
) -> None:
    """Store the heartbeat of the controller.

    Raises:
        LeaseLost: another controller holds the lease.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        heartbeat = Heartbeat(observed_at=observed_at, epoch=lease.epoch, state=state, message=message, **asdict(load))
        await connection.execute(_BEAT, *_COLUMNS.arguments([_COLUMNS.values(heartbeat)]))


async def read(db: Database) -> Heartbeat | None:
    """Return the last heartbeat, or None if no controller ever ran."""
    async with db.read() as connection:
        row = await connection.fetchrow(_READ)
    return None if row is None else Heartbeat(**row)
